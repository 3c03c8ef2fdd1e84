select value #>> '{}' as mode from channel_settings
where agent_id = @agent and channel = @channel and key = 'response_mode' and scope_id in (@chat, 'global')
order by scope_id = 'global' limit 1
