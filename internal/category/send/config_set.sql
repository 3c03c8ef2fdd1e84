insert into channel_settings as s (agent_id, channel, scope_id, key, value, updated_by, updated_at)
values (@agent, @channel, @scope_id, @key, @value, @by, @now)
on conflict (agent_id, channel, scope_id, key) do update set value = excluded.value, updated_by = excluded.updated_by, updated_at = excluded.updated_at
where s.value <> excluded.value
