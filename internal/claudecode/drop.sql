-- all agents: $1 says whose.
delete from usage where session_id = any ($3::text[]) and session_id <> '' and agent_id = $1 and source = $2
