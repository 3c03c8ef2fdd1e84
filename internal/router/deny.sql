-- all agents: the call says for whom.
update approvals set state = 'denied', decided_by = 'client', decided_at = clock_timestamp(), reason = $3
where id = $1 and agent_id = $2 and state = 'pending' and expires_at > clock_timestamp()
