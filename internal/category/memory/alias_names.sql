with root as (
    select coalesce((select canonical from memory_aliases where agent_id = @agent and alias = @name), @name::text) as name
)
select name from (
    select name from root
    union
    select a.alias from memory_aliases a join root on a.canonical = root.name where a.agent_id = @agent
) names
where name <> @name
order by name
