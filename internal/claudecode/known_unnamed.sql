-- all agents: $1 says whose.
select exists (select from usage where agent_id = $1 and at >= $3 and session_id = '' and source = $2) as known
