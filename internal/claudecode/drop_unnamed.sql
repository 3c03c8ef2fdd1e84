-- all agents: $1 says whose. A point covers the time before it.
delete from usage where agent_id = $1 and at >= $3 and session_id = '' and source = $2
