select a.id as agent_id, a.display_name, a.role, a.state,
       exists (select from stops s
               where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)) as stopped,
       coalesce(a.reports_to, '') as reports_to, a.model, a.icon, a.trigger
from agents a
where (@operator::boolean or a.id in (select agents_under(@agent)))
  and (@archived::boolean or a.state <> 'archived') and a.id > @after
order by a.id
limit @limit
