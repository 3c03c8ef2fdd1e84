with due as (
    select s.id, s.state as was,
           case when s.state = 'draft' then 'active'
                when coalesce(s.last_used_at, s.created_at) < @archive::timestamptz and s.uses > 0 then 'archived'
                when coalesce(s.last_used_at, s.created_at) < @stale::timestamptz then 'stale'
                else 'active' end as next
    from skills s
    where (s.scope = 'agent' and s.agent_id = @agent or s.scope = 'global' and @operator::boolean)
      and not s.pinned and s.state <> 'archived'
      and (s.state <> 'draft' or exists (
          select from skill_feedback f
          where f.skill_id = s.id and f.version = s.version
          having count(*) >= @trials::integer and avg(f.success::integer) >= @success::float8))
    for update
), moved as (
    update skills s set state = d.next, updated_at = @now
    from due d
    where s.id = d.id and s.state <> d.next
    returning s.id, s.name, s.scope, s.state, s.pinned, s.uses, s.last_used_at, s.created_at, d.was
)
select id as skill_id, name as skill_name, scope, state, pinned, uses, last_used_at as last_used,
       greatest(0, extract(day from @now::timestamptz - coalesce(last_used_at, created_at)))::integer as idle_days, was
from moved
order by id
