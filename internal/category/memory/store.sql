insert into memories (agent_id, id, content, digest, layer, importance, tags, created_at, last_stored_at, follows,
                      origin, origin_trust, terms, weights, terms_version)
values (@agent, @id, @content, @digest, @layer, @importance, @tags, @now, @now,
        (select n from memories
         where agent_id = @agent and live and created_at between @now::timestamptz - interval '1 hour' and @now
         order by created_at desc, n desc
         limit 1),
        @origin, @origin_trust, @terms, @weights, @terms_version)
on conflict (agent_id, digest) where live do update set
    times_stored   = memories.times_stored + 1,
    last_stored_at = excluded.last_stored_at,
    importance     = greatest(memories.importance, excluded.importance),
    origin_trust   = greatest(memories.origin_trust, excluded.origin_trust)
returning id, created_at as stored_at, times_stored
