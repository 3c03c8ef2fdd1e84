select s.id as skill_id, s.name as skill_name, c.candidate_id, s.state, s.uses, c.made_at,
       coalesce((select g.id from skills g where g.scope = 'global' and g.lineage = 'graduate:' || s.id), '') as graduated,
       (select count(*) from skill_feedback f where f.skill_id = s.id and f.version = s.version) as trials,
       (select count(*) from skill_feedback f where f.skill_id = s.id and f.version = s.version and f.success) as good
from skill_candidates c join skills s on s.id = c.skill_id
where c.agent_id = @agent
order by c.made_at desc, s.id
limit 50
