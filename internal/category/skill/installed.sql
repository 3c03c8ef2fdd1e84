select v.hub, v.repo, v.path
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where v.hub <> '' and (s.scope = 'global' or s.scope = 'agent' and s.agent_id = @agent)
