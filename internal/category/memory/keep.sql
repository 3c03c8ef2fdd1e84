insert into memories (agent_id, id, content, digest, layer, importance, tags, marks, created_at, last_stored_at, follows, same_as,
                      origin, origin_trust, derived_from, source_event,
                      subject, predicate, object, fact, valid_from, valid_until, supersedes, superseded_by, retired,
                      terms, weights, terms_version)
values (@agent, @id, @content, @digest, @layer, @importance, @tags, @marks, @at, @at,
        (select n from memories
         where agent_id = @agent and live and created_at between @at::timestamptz - interval '1 hour' and @at
         order by created_at desc, n desc
         limit 1),
        nullif(@same_as::integer, 0),
        @origin, @origin_trust, @derived_from, @source_event,
        @subject, @predicate, @object, @fact, @valid_from, @valid_until, nullif(@supersedes, ''), @superseded_by, @retired,
        @terms, @weights, @terms_version)
on conflict (agent_id, digest) where live do update set
    times_stored   = memories.times_stored + 1,
    last_stored_at = greatest(memories.last_stored_at, excluded.last_stored_at),
    importance     = greatest(memories.importance, excluded.importance),
    origin_trust   = greatest(memories.origin_trust, excluded.origin_trust)
returning id, created_at as stored_at, times_stored
