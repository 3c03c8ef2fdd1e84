with shared as (
    select p.memory, count(*) as keys
    from unnest(@terms::bigint[]) as t (term)
    cross join lateral (
        select memory from memory_terms
        where term = t.term
        order by weight desc, memory desc
        limit @depth
    ) p
    group by p.memory
    having count(*) >= @least
    order by keys desc, p.memory
    limit @checks
)
select coalesce(m.same_as, m.n) as first, m.content
from shared s
join memories m on m.n = s.memory
where m.agent_id = @agent and m.live and m.fact is null and m.digest <> @digest and length(m.content) <= @length
order by s.keys desc, m.n
