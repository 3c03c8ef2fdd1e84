select prompt, result from (
    select w.payload ->> 'prompt' as prompt, w.result, w.created_at, w.id
    from work w
    where w.agent_id = @agent and w.from_agent = @from and w.session = @session and w.kind = 'prompt' and w.state = 'done' and w.result <> ''
      and w.created_at <= @before and w.id <> @id
    order by w.created_at desc, w.id desc
    limit @limit
) newest
order by created_at, id
