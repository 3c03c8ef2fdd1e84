-- all agents: it reads nothing. It holds for the transaction.
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true)
