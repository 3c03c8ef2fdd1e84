select id, origin_trust from memories
where agent_id = @agent and id = any (@ids::text[]) and not quarantined and invalidated_at is null
