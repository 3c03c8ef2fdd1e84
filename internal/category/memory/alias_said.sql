with pairs as (
    select alias, canonical from memory_aliases where agent_id = @agent
)
select alias as said, canonical as other from pairs where strpos(@query, alias) > 0
union
select canonical, alias from pairs where strpos(@query, canonical) > 0
union
select a.alias, b.alias from pairs a join pairs b on b.canonical = a.canonical and b.alias <> a.alias where strpos(@query, a.alias) > 0
order by 1, 2
limit 64
