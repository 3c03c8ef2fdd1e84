update odoo_writes
set state = @state, note = @note, record_ids = @ids, ended_at = @now
where id = @id and agent_id = @agent
