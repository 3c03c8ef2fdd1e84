-- all agents: the queue is one. With @ids, only those.
with due as (
    select w.id
    from work w join agents a on a.id = w.agent_id
    where w.state = 'queued' and w.run_at <= clock_timestamp() and a.state = 'active'
      and (@ids::uuid[] is null or w.id = any(@ids))
      and not exists (select from stops s where s.agent_id is null or s.agent_id in (w.agent_id, w.from_agent)
                      having bool_or(s.resumed_at is null or s.stopped_at >= w.created_at))
    order by w.run_at
    for update of w skip locked
    limit @most
)
update work w
set state = 'running', fence = w.fence + 1, attempts = w.attempts + 1, worker = @worker, error = '',
    lease_until = clock_timestamp() + make_interval(secs => @lease), started_at = coalesce(w.started_at, clock_timestamp())
from due
where w.id = due.id
returning w.id, w.kind, w.source, w.agent_id as agent, w.from_agent as "from", w.payload::text as payload, w.scopes, w.narrowed_by, w.root_id,
          w.depth, w.session, w.attempts, w.max_attempts, w.fence, w.created_at
