-- all agents: the record of an operator's command.
insert into audit (id, request_id, door, agent_id, credential_id, method, decision, reason, outcome, arguments, duration_us)
values (@id, @request_id, @door, @agent_id, @credential_id, @method, @decision, @reason, @outcome, @arguments, @duration_us)
