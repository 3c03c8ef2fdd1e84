select n
from memories
where agent_id = @agent and live
  and n in (select p.memory
            from unnest(@tags::bigint[]) as t (term)
            cross join lateral (
                select memory from memory_terms
                where term = t.term
                order by weight desc, memory desc -- all weigh 0: the newest
                limit @scan_depth
            ) p)
  and (@shared::bigint[] = '{}' or terms && @shared)
  and (valid_until is null or valid_until > @now)
  and (@layer::text = '' or layer = @layer)
  and created_at >= @since and created_at < @until
order by created_at desc, n desc
limit @limit
