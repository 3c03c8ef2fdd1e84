delete from channels where agent_id = @agent_id and channel = @channel
