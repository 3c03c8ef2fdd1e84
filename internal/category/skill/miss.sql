insert into skill_misses (agent_id, key, query, last_at)
values (@agent, @key, @query, @now)
on conflict (agent_id, key) do update set times = skill_misses.times + 1, query = excluded.query, last_at = excluded.last_at
