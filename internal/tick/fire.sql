-- all agents: there is one clock. Whoever moves a schedule on from the slot it was
-- seen at records its slots and queues their work, all in this statement; the
-- others find it moved.
with plan as (
    select * from jsonb_to_recordset(@plans::jsonb) as p (id text, seen timestamptz, next timestamptz, slots jsonb)
), moved as (
    update schedules s set next_slot = p.next
    from plan p
    where s.id = p.id and s.next_slot = p.seen and s.enabled
    returning s.id, s.agent_id, s.created_by, s.name, s.task, s.notify, s.overlap, s.jitter_seconds, s.scopes, s.narrowed_by, p.slots
), standing as (
    select m.id,
           a.state <> 'active' or exists (select from stops t where t.resumed_at is null and (t.agent_id is null or t.agent_id in (m.agent_id, m.created_by))) as suspended,
           m.overlap = 'skip' and exists (select from firings f join work w on w.id = f.work_id where f.schedule_id = m.id and w.finished_at is null) as busy
    from moved m join agents a on a.id = m.agent_id
), fired as (
    insert into firings (schedule_id, slot, state, missed, work_id)
    select m.id, s.slot,
           case when not s.run then 'missed' when st.suspended then 'suspended' when st.busy then 'overlapped' else 'queued' end,
           s.missed,
           case when s.run and not st.suspended and not st.busy then gen_random_uuid() end
    from moved m join standing st using (id) cross join jsonb_to_recordset(m.slots) as s (slot timestamptz, run boolean, missed integer)
    on conflict do nothing
    returning schedule_id, slot, state, work_id
), queued as (
    insert into work (id, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, root_id, notify, idempotency_key, lane, run_at)
    select f.work_id, 'prompt', 'schedule', m.agent_id, m.created_by,
           jsonb_build_object('prompt', format('[Scheduled task %s, due at %s]', m.name, to_char(f.slot at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) || E'\n' || m.task),
           m.scopes, m.narrowed_by || case when m.created_by = m.agent_id then '{}' else array[m.created_by] end, f.work_id, m.notify,
           'slot/' || f.schedule_id || '/' || extract(epoch from f.slot), 'schedule/' || f.schedule_id,
           clock_timestamp() + make_interval(secs => case when m.jitter_seconds = 0 then 0
               else abs(hashtextextended(f.schedule_id || f.slot, 0) % m.jitter_seconds) end)
    from fired f join moved m on m.id = f.schedule_id
    where f.state = 'queued'
    order by f.slot -- and so in their lane
)
select count(*) filter (where state = 'queued') as fired, count(*) filter (where state <> 'queued') as passed from fired
