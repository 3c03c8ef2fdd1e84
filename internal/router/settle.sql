-- all agents: every row says whose it is.
select gate_settle($1::jsonb, $2::jsonb, $3::boolean)
