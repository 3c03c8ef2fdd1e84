select w.id as message_id, w.state, w.created_at as asked_at, w.finished_at,
       left(w.result, @length::integer) as response, length(w.result) > @length::integer as cut, w.error
from work w
where w.agent_id = @agent_id and (w.from_agent = @agent or @operator::boolean)
  and w.source in ('send_to_agent', 'send_to_superior', 'spawn_agent', 'spawn_ephemeral')
  and (@only::uuid is null or w.id = @only)
  and (w.created_at, w.id) < (@before::timestamptz, @before_id::uuid)
order by w.created_at desc, w.id desc
limit @limit
