-- all agents: for an operator.
delete from memory_shares where owner_id = @owner_id and agent_id = @agent_id
