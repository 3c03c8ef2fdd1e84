-- all agents: sums belong to none.
select usage_fold(100000) as n
