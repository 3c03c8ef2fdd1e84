-- all agents: it puts the queue in order. What lost its worker goes back or, after
-- its last attempt, ends; what an emergency stop or the end of its agent came
-- over ends; agents made for one piece of work go with it.
with over as (
    select w.id, a.state = 'archived' as archived
    from work w join agents a on a.id = w.agent_id
    where w.state in ('queued', 'running')
      and (a.state = 'archived' or exists (select from stops s where s.stopped_at >= w.created_at
                                           and (s.agent_id is null or s.agent_id in (w.agent_id, w.from_agent))))
    for update of w skip locked
), cancelled as (
    update work w set state = 'cancelled', lease_until = null, finished_at = clock_timestamp(),
           error = case when over.archived then 'the agent was removed' else 'an emergency stop' end
    from over where w.id = over.id
    returning w.id
), lost as (
    select w.id from work w
    where w.state = 'running' and w.lease_until < clock_timestamp() and w.id not in (select id from over)
    for update of w skip locked
), buried as (
    update work w set state = 'dead', lease_until = null, finished_at = clock_timestamp(), error = 'the worker was lost during the last attempt'
    from lost where w.id = lost.id and w.attempts >= w.max_attempts
    returning w.id
), returned as (
    update work w set state = 'queued', lease_until = null, sent_at = null, error = 'the worker was lost',
           run_at = clock_timestamp() + make_interval(secs => least(600, 5 * 4 ^ (w.attempts - 1)))
    from lost where w.id = lost.id and w.attempts < w.max_attempts
    returning w.id
), unheard as (
    -- Told to SQS long ago and still waiting: the message may be gone.
    update work w set sent_at = null
    where w.state = 'queued' and w.sent_at < clock_timestamp() - interval '1 hour' and w.run_at < clock_timestamp()
      and w.id not in (select id from over)
    returning w.id
), archived as (
    update agents a set state = 'archived', archived_at = clock_timestamp(), updated_at = clock_timestamp(), version = a.version + 1
    where a.ephemeral and a.state <> 'archived'
      and not exists (select from work w where w.agent_id = a.id and (w.finished_at is null or w.finished_at > clock_timestamp() - interval '1 hour'))
      and a.created_at < clock_timestamp() - interval '1 hour'
    returning a.id
)
select (select count(*) from cancelled) as cancelled, (select count(*) from buried) as buried, (select count(*) from returned) as returned,
       (select count(*) from unheard) as unheard, (select count(*) from archived) as archived
