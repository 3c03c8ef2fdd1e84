select n, content
from memories
where agent_id = @agent and live and created_at >= @since and same_as is null and fact is null and length(content) <= @length
order by created_at desc, n desc
limit @limit
