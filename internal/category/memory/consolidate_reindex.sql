update memories set terms = @terms, weights = @weights, terms_version = @version
where agent_id = @agent and n = @n
