update memories set retired = true, superseded_by = @by
where agent_id = @agent and id = @id and live
