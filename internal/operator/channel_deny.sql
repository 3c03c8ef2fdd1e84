delete from channel_targets where agent_id = @agent_id and channel = @channel and target = @target
