-- all agents: for an operator.
select agent_id, seq, problem from audit_verify(nullif(@agent_id, '')) limit @most
