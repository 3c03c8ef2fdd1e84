-- all agents: the queue is one. With @ids, only those.
select w.id, w.kind, w.source, w.agent_id as agent, w.from_agent as "from", w.payload::text as payload, w.scopes, w.narrowed_by, w.root_id,
       w.depth, w.session, w.attempts, w.max_attempts, w.fence, w.created_at
from work_claim(@ids, @most, @worker, @lease) w
