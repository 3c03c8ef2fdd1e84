-- all agents: the scheduled run visits each of them in turn
select a.id as agent
from agents a
left join memory_consolidations r on r.agent_id = a.id
where exists (select from memories m where m.agent_id = a.id)
  and (r.ran_at is null or r.ran_at < @before)
order by r.ran_at nulls first, a.id
