select n, id, left(content, @excerpt) as content, length(content) > @excerpt as truncated,
       tags, layer, importance, created_at
from memories
where agent_id = @agent and live and n = any (@numbers::integer[])
