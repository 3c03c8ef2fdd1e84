insert into skill_runs (id, agent_id, started_at, lookback_days, model)
values (@id, @agent, @now, @days, @model)
