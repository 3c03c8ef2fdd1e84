select pg_advisory_xact_lock(hashtextextended('pairing ' || @agent_id, 0))
