update memories set retired = true
where n in (
    select n from memories
    where agent_id = @agent and live and layer = 'episodic' and fact is null
      and created_at < @before and last_stored_at < @before
      and importance <= @importance and not marks && '{open,decision}'
      and exp(-extract(epoch from @now::timestamptz - last_stored_at)
              / (@days::float8 * 86400 * importance / 5 * (1 + ln(times_stored)))) < @strength
    order by created_at, n
    limit @limit)
  and agent_id = @agent
