select s.id as skill_id, s.name as skill_name, s.scope, s.state, s.pinned, s.uses, s.last_used_at as last_used,
       greatest(0, extract(day from @now::timestamptz - coalesce(s.last_used_at, s.created_at)))::integer as idle_days, '' as was
from skills s
where s.scope = 'agent' and s.agent_id = @agent or s.scope = 'global' and @operator::boolean
order by coalesce(s.last_used_at, s.created_at), s.id
limit 500
