select owner_id, tags
from memory_shares
where agent_id = @agent and (until is null or until > @now)
order by owner_id
