insert into feedback (agent_id, by_agent, credential_id, signal_type, detail)
values (@about, @agent, @credential, @kind, @detail)
returning id as feedback_id, agent_id, signal_type
