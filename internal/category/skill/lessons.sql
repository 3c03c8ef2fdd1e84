select id, left(content, 2000) as content, created_at as at, times_stored as times
from (
    select id, content, created_at, times_stored
    from memories
    where agent_id = @agent and live and created_at >= @since and origin_trust >= 0.5
      and ('success' = any (marks) or layer = 'procedural')
    order by created_at desc, id
    limit @limit
) newest
order by created_at, id
