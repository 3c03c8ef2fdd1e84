-- What an agent works by: its own skills, and the global ones of other names.
select s.name as skill_name, s.scope, s.version, s.state, s.pinned, v.risk, v.passed or v.accepted_by <> '' as usable, v.bytes, s.lineage,
       encode(v.digest, 'hex') as content_sha256
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where (s.scope = 'agent' and s.agent_id = @agent
       or s.scope = 'global' and not exists (
           select from skills o where o.scope = 'agent' and o.agent_id = @agent and o.name = s.name and o.state <> 'archived'))
  and (@archived::boolean or s.state <> 'archived')
  and s.name collate "C" > @after
order by s.name collate "C", s.scope
limit @limit
