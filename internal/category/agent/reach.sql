select a.id as agent_id, a.display_name, a.role, a.state, a.trigger, coalesce(a.reports_to, '') as reports_to, a.version, a.evolution::text as evolution
from agents a
where a.id = @agent_id and (@operator::boolean or a.id in (select agents_under(@agent)))
