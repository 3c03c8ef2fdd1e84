select pg_advisory_xact_lock(hashtextextended(@agent || chr(1) || @tool, 3))
