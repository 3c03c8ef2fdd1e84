select n, id, left(content, @excerpt) as content, length(content) > @excerpt as truncated,
       tags, layer, importance, created_at
from memories
where agent_id = @agent and live
  and (@layer::text = '' or layer = @layer)
  and (@tags::bigint[] = '{}' or terms && @tags)
  and created_at >= @since and created_at < @until
order by created_at desc, n desc
limit @limit
