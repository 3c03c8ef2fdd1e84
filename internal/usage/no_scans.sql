-- all agents: it reads nothing. It holds for the transaction: groups are hashed
-- in memory, which the planner, not knowing how many there are, would not do.
select set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
       set_config('work_mem', '64MB', true), set_config('plan_cache_mode', 'force_custom_plan', true)
