-- all agents: the operating-system user names one.
select model, coalesce((select s.content from agent_souls s where s.agent_id = a.id order by s.version desc limit 1), '') as soul
from agents a
where id = @agent_id
