-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select case when s.agent_id is null then 'all' else 'agent' end as scope,
       coalesce(s.agent_id, '') as agent_id, s.reason, s.stopped_by, s.stopped_at as since
from stops s
where s.resumed_at is null
  and (s.agent_id is null or s.agent_id in (select id from visible))
  and (@only = '' or s.agent_id is null or s.agent_id = @only)
order by s.agent_id nulls first
limit 500
