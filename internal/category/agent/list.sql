-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select a.id as agent_id, a.display_name, a.role, a.state,
       exists (select from stops s
               where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)) as stopped,
       coalesce(a.reports_to, '') as reports_to, a.model, a.icon, a.trigger
from agents a join visible using (id)
where (@archived::boolean or a.state <> 'archived') and a.id > @after
order by a.id
limit @limit
