-- all agents: for an operator.
select owner_id, agent_id, tags, granted_by, granted_at, until, until <= @now as expired
from memory_shares
where @either = '' or owner_id = @either or agent_id = @either
order by owner_id, agent_id
limit 1000
