-- all agents: cron_find.sql has found and locked it for the caller.
with laned as (
    update work set lane = 'schedule/' || @id where id = @work_id
)
insert into firings (schedule_id, slot, state, manual, work_id) values (@id, clock_timestamp(), 'queued', true, @work_id)
