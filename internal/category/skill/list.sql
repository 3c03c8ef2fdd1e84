select s.id as skill_id, s.name, v.description, s.scope, s.version, s.state, s.pinned,
       s.scope = 'global' and exists (select from skills o where o.scope = 'agent' and o.agent_id = @agent and o.name = s.name and o.state <> 'archived') as overridden,
       v.risk, s.uses, s.last_used_at
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where (s.scope = 'global' or s.scope = 'agent' and s.agent_id = @agent)
  and (@archived::boolean or s.state <> 'archived') and s.id > @after
order by s.id
limit @limit
