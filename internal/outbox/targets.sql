select target, name from channel_targets where agent_id = @agent and channel = @channel order by name, target
