-- all agents: what is old is old, whosever it is.
select usage_prune($1) as n
