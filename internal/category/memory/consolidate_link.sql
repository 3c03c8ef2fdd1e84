update memories set same_as = @first
where agent_id = @agent and (n = @n and same_as is null or same_as = @n)
