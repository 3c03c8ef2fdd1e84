-- all agents: budgets are changed one at a time.
select budget_alone()
