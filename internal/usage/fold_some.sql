-- all agents: sums belong to none.
select usage_fold(10000) where (select count(*) from (select from usage_changes limit 1000) c) = 1000
