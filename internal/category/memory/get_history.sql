select id, content, object, valid_from, valid_until, supersedes, superseded_by, origin, origin_trust, stored_at, times_stored
from (select n, id, content, object, valid_from, valid_until,
             coalesce(supersedes, '') as supersedes, coalesce(superseded_by, '') as superseded_by,
             origin, origin_trust, created_at as stored_at, times_stored
      from memories
      where agent_id = @agent and fact = any (@facts::text[]) and not quarantined and invalidated_at is null
        and (@shared::bigint[] = '{}' or terms && @shared)
      order by valid_from desc, n desc
      limit @limit) latest
order by valid_from, n
