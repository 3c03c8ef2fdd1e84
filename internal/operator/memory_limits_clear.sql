-- all agents: for an operator.
delete from memory_limits where agent_id = @agent_id
