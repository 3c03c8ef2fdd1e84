select n, id, content, layer, importance, tags, marks, created_at, times_stored, last_stored_at,
       origin, origin_trust, derived_from, source_event,
       coalesce(subject, '') as subject, coalesce(predicate, '') as predicate, coalesce(object, '') as object,
       valid_from, valid_until, said_until, coalesce(supersedes, '') as supersedes, coalesce(superseded_by, '') as superseded_by,
       retired, quarantined, invalidated_at, coalesce(invalidated_by, '') as invalidated_by,
       coalesce((select f.id from memories f where f.n = m.same_as and f.agent_id = @agent), '') as same_as
from (select *, sum(octet_length(content)) over (order by n) - octet_length(content) as before
      from (select * from memories
            where agent_id = @agent and n > @after
            order by n
            limit @limit) page) m
where before < @bytes
order by n
