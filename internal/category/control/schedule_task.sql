insert into schedules (id, agent_id, created_by, name, cron, timezone, task, notify, misfire, overlap, jitter_seconds, scopes, narrowed_by, next_slot, created_at, updated_at)
values (@id, @agent_id, @agent, @name, @cron, @timezone, @task, @notify, @misfire, @overlap, @jitter, @scopes,
        coalesce((select w.narrowed_by from work w where w.id = @run::uuid), '{}'), @next, @now, @now)
