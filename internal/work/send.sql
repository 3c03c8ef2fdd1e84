-- all agents: the outbox is one. Only what could be claimed is told of. The mark
-- is set before, so that no request to SQS is made within a transaction and no
-- two tell of the same; told.sql confirms it or takes it back.
update work set sent_at = clock_timestamp(), telling_until = clock_timestamp() + make_interval(secs => @telling)
where id in (select w.id from work w join agents a on a.id = w.agent_id
             where w.state = 'queued' and (w.sent_at is null or w.telling_until < clock_timestamp()) and w.run_at <= clock_timestamp() and a.state = 'active'
               and (w.lane is null or work_turn(w))
               and not exists (select from stops s where s.agent_id is null or s.agent_id in (w.agent_id, w.from_agent)
                               having bool_or(s.resumed_at is null or s.stopped_at >= w.created_at))
               and (a.max_concurrent is null or w.kind <> 'prompt' or w.id in (select work_places(null)))
             order by w.run_at for update of w skip locked limit @most)
returning id, sent_at
