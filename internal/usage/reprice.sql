-- all agents: a price is the same for all.
select usage_reprice($1::bigint[]) as n
