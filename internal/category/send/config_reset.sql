delete from channel_settings where agent_id = @agent and channel = @channel and scope_id = @scope_id and key = @key
