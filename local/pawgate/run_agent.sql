-- all agents: the operating-system user names one.
select model from agents where id = @agent_id
