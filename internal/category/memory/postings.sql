-- all agents: the agent is part of every term's number (index.go)
select t.term, coalesce(p.memories, '{}') as memories, coalesce(p.weights, '{}') as weights, s.sampled
from unnest(@terms::bigint[]) as t (term)
cross join lateral (
    select array_agg(memory) as memories, array_agg(weight) as weights
    from (select memory, weight from memory_terms
          where term = t.term
          order by weight desc, memory desc
          limit @depth) top
) p
cross join lateral (
    select count(*) as sampled
    from (select from memory_terms where term = t.term and memory % 64 = 0 limit @sample_depth) sample
) s
