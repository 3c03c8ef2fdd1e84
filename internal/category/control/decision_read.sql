select question, options, coalesce(chosen_key, '') as chosen_key, expires_at,
       case when state = 'open' and expires_at <= clock_timestamp() then 'expired' else state end as state
from decisions
where agent_id = @agent and id = @id
