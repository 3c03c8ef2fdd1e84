select id, content, object, valid_from, valid_until,
       coalesce(supersedes, '') as supersedes, coalesce(superseded_by, '') as superseded_by,
       origin, origin_trust, created_at as stored_at, times_stored
from memories
where agent_id = @agent and fact = any (@facts::text[]) and not quarantined and invalidated_at is null
  and (@shared::bigint[] = '{}' or terms && @shared)
  and valid_from <= @at and (valid_until is null or valid_until > @at)
order by valid_from desc, n desc
limit 1
