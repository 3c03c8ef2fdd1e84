-- all agents: for an operator.
select name from audit_prune(@before::date) as name
