select target from channel_targets
where agent_id = @agent_id and channel = @channel and lower(name) = lower(@name) and name <> '' and target <> @target
