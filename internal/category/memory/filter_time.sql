select n
from memories
where agent_id = @agent and live
  and (valid_until is null or valid_until > @now)
  and created_at >= @since and created_at < @until
order by created_at desc, n desc
limit @limit
