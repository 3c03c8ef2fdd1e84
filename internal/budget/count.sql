-- all agents: it counts for whom the budget is.
select budget_count($1)
