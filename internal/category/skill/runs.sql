select id as run_id, started_at, ended_at, lookback_days, model, outcomes
from skill_runs
where agent_id = @agent
order by started_at desc, id
limit 20
