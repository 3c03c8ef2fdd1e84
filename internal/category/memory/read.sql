select id, content, tags, layer, importance, origin, origin_trust, created_at, times_stored, last_stored_at
from memories
where agent_id = @agent and live and id = @id
