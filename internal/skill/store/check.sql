select s.id, s.scope, coalesce(s.agent_id, '') as agent_id, s.name, s.lineage, s.state, s.pinned, s.version,
       v.description, v.tags, v.body, v.digest, v.risk, v.passed, v.scanner, v.accepted_by, s.created_by
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where s.id = any (@ids::text[])
