-- The end of an item and the notice of it are one statement.
with ended as (
    update work set state = @state, result = @result, error = @error, finished_at = clock_timestamp(), lease_until = null
    where id = @id and fence = @fence and state = 'running'
    returning *
), notice as (
    insert into work (id, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, root_id, parent_id, depth, idempotency_key)
    select gen_random_uuid(), 'call', 'notice', e.from_agent, e.from_agent,
           jsonb_build_object('tool', 'send_message', 'arguments', jsonb_strip_nulls(jsonb_build_object(
               'channel', e.notify -> 'channel', 'text', @notice::text,
               -- A thread of Discord is a channel; elsewhere it comes after the chat.
               'chat_id', case when e.notify ->> 'thread_id' is null then e.notify ->> 'chat_id'
                               when e.notify ->> 'channel' = 'discord' then e.notify ->> 'thread_id'
                               else (e.notify ->> 'chat_id') || '/' || (e.notify ->> 'thread_id') end))),
           e.scopes, array_remove(e.narrowed_by, e.from_agent), e.root_id, e.id, e.depth, 'notice/' || e.id
    from ended e
    where e.notify is not null and @notice::text <> ''
)
select count(*) from ended
