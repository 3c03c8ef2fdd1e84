-- all agents: the ask says for whom.
select budget_reserve($1::jsonb) as answer
