-- all agents: cron_find.sql has found and locked it for the caller.
delete from schedules where id = @id
