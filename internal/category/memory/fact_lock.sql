-- all agents: the lock's number holds the agent
select pg_advisory_xact_lock(@lock)
