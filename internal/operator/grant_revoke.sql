-- all agents: for an operator.
update approvals
set state = 'revoked', reason = @reason
where id = @id and state = 'approved'
