-- all agents: an operator takes it away.
delete from budgets where id = @id
