-- all agents: every row says whose it is.
select added, grown, late from budget_settle($1::text[], $2::jsonb)
