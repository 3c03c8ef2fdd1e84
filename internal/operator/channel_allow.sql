insert into channel_targets (agent_id, channel, target, name, set_by, set_at)
select c.agent_id, c.channel, @target, @name, @by, @now from channels c where c.agent_id = @agent_id and c.channel = @channel
on conflict (agent_id, channel, target) do update set name = excluded.name, set_by = excluded.set_by, set_at = excluded.set_at
