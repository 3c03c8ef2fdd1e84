-- all agents: $5 says whose, null for all of them.
-- Sums by agent alone, or with $11 of everyone; see report_models.sql.
with span as materialized (
    select * from unnest($1::smallint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[]) s (level, lo, hi, period)
), part as (
    select s.period, m.agent_id, m.requests, m.unpriced, m.units, m.input, m.output, m.cache_read, m.cache_write_5m, m.cache_write_1h, m.reasoning, m.cost_micros
    from span s cross join unnest(case when $11::boolean then array[''] else $5::text[] end) a (agent)
    cross join lateral (select * from usage_by_agent r where r.agent_id = a.agent and r.level = s.level and r.at >= s.lo and r.at < s.hi offset 0) m
    where s.level >= 0
    union all
    select s.period, m.agent_id, m.requests, m.unpriced, m.units, m.input, m.output, m.cache_read, m.cache_write_5m, m.cache_write_1h, m.reasoning, m.cost_micros
    from span s
    cross join lateral (select * from usage_by_agent r where r.level = s.level and r.at >= s.lo and r.at < s.hi and r.agent_id <> '' offset 0) m
    where s.level >= 0 and $5::text[] is null and not $11::boolean
    union all
    select s.period, c.agent_id, c.requests, c.unpriced, c.units, c.input, c.output, c.cache_read, c.cache_write_5m, c.cache_write_1h, c.reasoning, c.cost_micros
    from usage_changes c join span s on c.at >= s.lo and c.at < s.hi
    where s.level >= 0 and ($5::text[] is null or c.agent_id = any ($5::text[]))
    union all
    select s.period, u.agent_id, u.requests, (u.cost_micros is null)::int, u.units, u.input, u.output, u.cache_read, u.cache_write_5m, u.cache_write_1h, u.reasoning, coalesce(u.cost_micros, 0)
    from span s
    cross join lateral (select * from usage r where r.at >= s.lo and r.at < s.hi offset 0) u
    where s.level < 0 and ($5::text[] is null or u.agent_id = any ($5::text[]))
)
select period,
       case $9::text when 'agent' then agent_id else '' end as key,
       case when $10::boolean then agent_id else '' end as agent,
       sum(requests)::bigint as requests, sum(unpriced)::bigint as unpriced, sum(units)::bigint as units, sum(input)::bigint as input, sum(output)::bigint as output,
       sum(cache_read)::bigint as cache_read, sum(cache_write_5m)::bigint as cache_write_5m, sum(cache_write_1h)::bigint as cache_write_1h,
       sum(reasoning)::bigint as reasoning, sum(cost_micros)::bigint as cost
from part
where $6::text = '' and $7::text = '' and $8::text[] is null -- these sums know no user, session or type
group by 1, 2, 3
-- What was added and taken away again is nothing.
having sum(requests) <> 0 or sum(input) <> 0 or sum(output) <> 0 or sum(cache_read) <> 0 or sum(cost_micros) <> 0 or sum(units) <> 0
    or sum(cache_write_5m) <> 0 or sum(cache_write_1h) <> 0
order by period, cost desc, requests desc, key, agent
