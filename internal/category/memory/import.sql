insert into memories (agent_id, id, content, digest, layer, importance, tags, marks, created_at, times_stored, last_stored_at, follows, same_as,
                      origin, origin_trust, derived_from, source_event,
                      subject, predicate, object, fact, valid_from, valid_until, said_until, supersedes, superseded_by,
                      retired, quarantined, invalidated_at, invalidated_by, terms, weights, terms_version)
values (@agent, @id, @content, @digest, @layer, @importance, @tags, @marks, @at, @times_stored, @last_stored_at,
        (select n from memories
         where agent_id = @agent and live and created_at between @at::timestamptz - interval '1 hour' and @at
         order by created_at desc, n desc
         limit 1),
        (select n from memories where agent_id = @agent and id = @same_as),
        @origin, @origin_trust, @derived_from, @source_event,
        @subject, @predicate, @object, @fact, @valid_from, @valid_until, @said_until, nullif(@supersedes, ''), nullif(@superseded_by, ''),
        @retired, @quarantined, @invalidated_at, nullif(@invalidated_by, ''), @terms, @weights, @terms_version)
on conflict do nothing
