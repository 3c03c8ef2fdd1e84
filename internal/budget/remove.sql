-- all agents: an operator takes it away.
select budget_remove($1) as removed
