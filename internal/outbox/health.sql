update channels set
    works_since = case when @works then coalesce(works_since, @now) when @broken then null else works_since end,
    last_sent_at = case when @sent then @now else last_sent_at end,
    last_error = case when @error = '' then last_error else @error end,
    last_error_at = case when @error = '' then last_error_at else @now end
where agent_id = @agent and channel = @channel
