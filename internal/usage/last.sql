select id, at, agent_id, user_id, case when model = '' then tool else model end as model, input, output, cache_read,
       cache_write_5m + cache_write_1h as cache_write, cost_micros, source
from usage
where (@agent = '' or agent_id = @agent) and id > @after
order by case when @after > 0 then id end, id desc
limit @limit
