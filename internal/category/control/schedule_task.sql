insert into schedules (id, agent_id, created_by, name, cron, timezone, task, notify, misfire, overlap, jitter_seconds, scopes, next_slot, created_at, updated_at)
values (@id, @agent_id, @agent, @name, @cron, @timezone, @task, @notify, @misfire, @overlap, @jitter, @scopes, @next, @now, @now)
