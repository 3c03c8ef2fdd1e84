update skill_runs set ended_at = @now, outcomes = @outcomes::jsonb
where id = @id and agent_id = @agent
