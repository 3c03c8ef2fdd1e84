-- all agents: cron_find.sql has found and locked it for the caller.
insert into firings (schedule_id, slot, state, manual, work_id) values (@id, clock_timestamp(), 'queued', true, @work_id)
