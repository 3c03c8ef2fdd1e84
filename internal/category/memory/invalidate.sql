update memories set invalidated_at = @now, invalidated_by = @by
where agent_id = @agent and origin = @origin and created_at >= @since and invalidated_at is null
