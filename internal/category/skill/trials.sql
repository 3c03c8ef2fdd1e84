-- all agents: whoever worked by the skill says how it went
select count(*) as trials, count(*) filter (where success) as good
from skill_feedback
where skill_id = @id and version = @version
