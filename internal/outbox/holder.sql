select hash, lease_until from outbox where agent_id = @agent and key = @key
