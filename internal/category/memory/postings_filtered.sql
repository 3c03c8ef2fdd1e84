select t.term, coalesce(p.memories, '{}') as memories, coalesce(p.weights, '{}') as weights, s.sampled
from unnest(@terms::bigint[]) as t (term)
cross join lateral (
    select array_agg(memory) as memories, array_agg(weight) as weights
    from (select p.memory, p.weight
          from (select memory, weight from memory_terms
                where term = t.term
                order by weight desc, memory desc
                limit @scan_depth) p
          join memories m on m.n = p.memory
          where m.agent_id = @agent and m.live
            and (@layer::text = '' or m.layer = @layer)
            and (@shared::bigint[] = '{}' or m.terms && @shared)
            and (@tags::bigint[] = '{}' or m.terms && @tags)
            and m.created_at >= @since and m.created_at < @until
          order by p.weight desc, p.memory desc
          limit @depth) top
) p
cross join lateral (
    select count(*) as sampled
    from (select from memory_terms where term = t.term and memory % 64 = 0 limit @sample_depth) sample
) s
