-- all agents: $1 says whose. What comes of one agent at once is taken one after
-- the other, or metrics and events of a session could miss each other.
select pg_advisory_xact_lock(hashtextextended('claude_code ' || $1::text, 52))
