-- all agents: the call says for whom.
select gate_reserve_paid($1::jsonb, $2::jsonb) as verdict
