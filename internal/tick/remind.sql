-- all agents: there is one clock. Each reminder is a piece of work of its own, so
-- that a slow one delays no other. One of an agent that is not at work waits.
with due as (
    select r.id
    from reminders r join agents a on a.id = r.agent_id
    where r.state = 'pending' and r.due_at <= clock_timestamp() and a.state = 'active'
      and not exists (select from stops s where s.resumed_at is null and (s.agent_id is null or s.agent_id = r.agent_id))
    order by r.due_at
    for update of r skip locked
    limit @limit
), fired as (
    update reminders r set state = 'fired', work_id = gen_random_uuid(), ended_at = clock_timestamp()
    from due
    where r.id = due.id
    returning r.*
), queued as (
    insert into work (id, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, root_id, notify, idempotency_key)
    select work_id, case mode when 'direct' then 'call' else 'prompt' end, 'reminder', agent_id, agent_id,
           case mode when 'direct'
               then jsonb_build_object('tool', 'send_message', 'arguments', jsonb_build_object('channel', channel, 'chat_id', chat_id, 'text', message))
               else jsonb_build_object('prompt', E'[Reminder]\n' || prompt) end,
           scopes, narrowed_by, work_id, case mode when 'agent_callback' then jsonb_build_object('channel', channel, 'chat_id', chat_id) end, 'reminder/' || id
    from fired
)
select count(*) from fired
