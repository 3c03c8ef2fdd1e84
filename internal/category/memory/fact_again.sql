update memories set
    times_stored   = times_stored + 1,
    last_stored_at = greatest(last_stored_at, @at),
    origin_trust   = greatest(origin_trust, @origin_trust)
where agent_id = @agent and id = @id
returning id, created_at as stored_at, times_stored
