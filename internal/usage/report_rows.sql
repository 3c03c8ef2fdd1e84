-- all agents: $5 says whose, null for all of them.
-- Sums of single rows, for what no kept sum knows; see report_models.sql.
select s.period,
       case $9::text when 'agent' then agent_id when 'user' then user_id when 'model' then model when 'provider' then provider when 'tool' then tool
           when 'request_type' then request_type when 'session' then session_id else '' end as key,
       case when $10::boolean then agent_id else '' end as agent,
       sum(requests)::bigint as requests, count(*) filter (where cost_micros is null) as unpriced, sum(units)::bigint as units, sum(input)::bigint as input, sum(output)::bigint as output,
       sum(cache_read)::bigint as cache_read, sum(cache_write_5m)::bigint as cache_write_5m, sum(cache_write_1h)::bigint as cache_write_1h,
       sum(reasoning)::bigint as reasoning, coalesce(sum(cost_micros), 0)::bigint as cost
from unnest($1::smallint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[]) s (level, lo, hi, period)
join usage u on u.at >= s.lo and u.at < s.hi
where $11::boolean is not null and ($5::text[] is null or agent_id = any ($5::text[])) and ($6::text = '' or user_id = $6)
  and ($7::text = '' or session_id = $7) and ($8::text[] is null or request_type = any ($8::text[]))
group by 1, 2, 3
order by period, cost desc, requests desc, key, agent
