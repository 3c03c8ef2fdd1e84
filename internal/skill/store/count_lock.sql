select pg_advisory_xact_lock(hashtextextended(@scope || chr(1) || @agent || chr(1) || @by, 56))
