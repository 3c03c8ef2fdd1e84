-- all agents: what a host says of itself belongs to none.
select report, extract(epoch from now() - reported_at)::bigint as age_seconds
from sidecars
where $1::text = any (categories)
order by reported_at desc
limit 1
