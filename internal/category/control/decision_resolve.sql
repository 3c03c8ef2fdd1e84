update decisions
set state = 'resolved', chosen_key = @key, resolved_at = clock_timestamp()
where agent_id = @agent and id = @id and state = 'open' and expires_at > clock_timestamp()
