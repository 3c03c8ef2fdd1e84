delete from outbox where agent_id = @agent and updated_at < @now::timestamptz - interval '30 days'
