-- all agents: cron_find.sql has found and locked it for the caller.
update schedules
set name = @name, cron = @cron, timezone = @timezone, task = @task, enabled = @enabled, next_slot = @next, scopes = @scopes, narrowed_by = @narrowed_by,
    version = version + 1, updated_at = @now
where id = @id
