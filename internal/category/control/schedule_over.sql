-- A schedule of @agent that has had its last slot, and whose runs are over, gives
-- its name back.
delete from schedules s
where s.created_by = @agent and s.agent_id = @agent_id and s.name = @name and s.next_slot is null
  and not exists (select from firings f join work w on w.id = f.work_id where f.schedule_id = s.id and w.finished_at is null)
