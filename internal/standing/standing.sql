-- all agents: the callers are what this statement finds out.
-- The standing of all callers that came together, in one round trip.
select * from gate_standing($1::jsonb)
