-- all agents: for an operator.
update agents set evolution = @evolution::jsonb where id = @agent_id
