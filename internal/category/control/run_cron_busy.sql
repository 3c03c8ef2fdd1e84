-- all agents: cron_find.sql has found and locked it for the caller.
select exists (select from firings f join work w on w.id = f.work_id where f.schedule_id = @id and w.finished_at is null) as busy
