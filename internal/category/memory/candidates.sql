select n, coalesce(same_as, n) as first, coalesce(follows, 0) as follows, importance, origin_trust, created_at,
       case when @whole::boolean then '{}' else terms end as terms,
       case when @whole::boolean then '{}' else weights end as weights
from memories
where agent_id = @agent and live and n = any (@numbers::integer[])
  and (@shared::bigint[] = '{}' or terms && @shared)
  and (valid_until is null or valid_until > @now)
