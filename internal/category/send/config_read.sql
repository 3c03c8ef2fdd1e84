select scope_id, key, value from channel_settings
where agent_id = @agent and channel = @channel and scope_id in (@scope_id, 'global') and (@key = '' or key = @key)
order by key, scope_id = 'global'
