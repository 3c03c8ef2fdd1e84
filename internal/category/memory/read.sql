select id, content, tags, layer, importance, origin, origin_trust, derived_from, created_at, times_stored, last_stored_at,
       coalesce(subject, '') as subject, coalesce(predicate, '') as predicate, coalesce(object, '') as object,
       valid_from, valid_until, coalesce(supersedes, '') as supersedes, coalesce(superseded_by, '') as superseded_by
from memories
where agent_id = @agent and id = @id and not quarantined and invalidated_at is null
  and (@shared::bigint[] = '{}' or terms && @shared)
