update memories set valid_until = @until, superseded_by = @by, retired = @retired
where agent_id = @agent and n = @n
