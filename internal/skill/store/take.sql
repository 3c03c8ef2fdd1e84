select s.id, s.lineage, s.pinned, s.version, s.state, v.digest, v.scanner, v.accepted_by,
       (select max(l.version) from skill_versions l where l.skill_id = s.id) as latest
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where s.scope = @scope and coalesce(s.agent_id, '') = @agent and s.name = @name
for update of s
