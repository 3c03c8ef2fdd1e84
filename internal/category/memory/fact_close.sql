update memories set said_until = coalesce(said_until, valid_until), valid_until = @until, superseded_by = @by, retired = @retired
where agent_id = @agent and n = @n
