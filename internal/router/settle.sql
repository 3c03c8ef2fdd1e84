-- all agents: every row says whose it is.
select gate_settle_paid($1::jsonb, $2::jsonb, $3::boolean)
