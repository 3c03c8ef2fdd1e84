insert into outbox as o (id, agent_id, key, hash, channel, target, lease_until, created_at, updated_at)
values (@id, @agent, @key, @hash, @channel, @target, @until, @now, @now)
on conflict (agent_id, key) do update set lease_until = excluded.lease_until
where o.hash = excluded.hash and (o.done or o.lease_until <= @now)
returning id, created_at
