select w.id, w.state, w.source, w.agent_id as agent, w.from_agent as "from", w.depth, w.attempts || '/' || w.max_attempts as attempts,
       w.created_at, w.run_at, w.lease_until as lease, w.finished_at as finished, w.worker, left(w.error, 500) as error
from work w
where (w.state = @state or @state = 'all' or @state = 'open' and w.state in ('queued', 'running', 'dead'))
  and (@agent_id = '' or @agent_id in (w.agent_id, w.from_agent))
  and (@before = 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid or (w.created_at, w.id) < (select b.created_at, b.id from work b where b.id = @before::uuid))
order by w.created_at desc, w.id desc
limit @limit
