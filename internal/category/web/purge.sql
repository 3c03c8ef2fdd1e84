-- all agents: the bounds of the cache hold over all of it
with turn as materialized (
    select pg_try_advisory_xact_lock(hashtext('web_pages purge')) as mine -- one purges, the others need not wait
), sized as (
    select agent_id, key, size, checked_at, sum(size) over (partition by agent_id order by checked_at desc, key) as of_agent
    from web_pages
    where checked_at >= @oldest
), counted as (
    select agent_id, key, sum(size) over (order by checked_at desc, agent_id, key) as of_all
    from sized
    where of_agent <= @agent_bytes
)
delete from web_pages p
using turn
where turn.mine
    and not exists (select from counted c where c.agent_id = p.agent_id and c.key = p.key and c.of_all <= @all_bytes)
