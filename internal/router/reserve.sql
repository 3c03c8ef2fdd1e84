-- all agents: the call says for whom.
select gate_reserve($1::jsonb, $2::jsonb) as verdict
