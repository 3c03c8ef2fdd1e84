select s.id as skill_id, s.name, v.description, v.tags, s.version, v.risk, s.created_by as shared_by, s.created_at as shared_at,
       (select count(*) from skill_adoptions a where a.skill_id = s.id) as adoptions,
       exists (select from skill_adoptions a where a.skill_id = s.id and a.agent_id = @agent) as adopted
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where s.scope = 'shared' and s.state <> 'archived' and s.id > @after
  and (@tag = '' or exists (select from unnest(v.tags) t where strpos(lower(t), lower(@tag)) > 0))
order by s.id
limit @limit
