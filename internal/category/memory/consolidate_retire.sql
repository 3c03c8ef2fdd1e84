update memories set retired = true
where agent_id = @agent and live and fact is not null and valid_until <= @now
