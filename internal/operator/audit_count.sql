-- all agents: for an operator.
select count(*) as rows, count(distinct agent_id) as chains, '[]'::jsonb as broken
from audit
where @agent_id = '' or agent_id = @agent_id
