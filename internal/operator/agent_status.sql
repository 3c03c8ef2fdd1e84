-- all agents: for an operator.
with calls as (
    -- What a tool refuses, such as a chat that is not open, did not fail.
    select u.agent_id, count(*) as calls, count(*) filter (where u.decision = 'refused' or u.outcome = 'fault' and u.reason = 'denied') as refused,
           count(*) filter (where u.outcome = 'invalid' or u.outcome = 'fault' and u.reason <> 'denied') as failed, max(u.at) as last_call_at,
           (array_agg(u.tool || ': ' || coalesce(nullif(u.reason, ''), u.outcome) order by u.seq desc)
               filter (where u.decision = 'refused' or u.outcome in ('fault', 'invalid')))[1] as last_error
    from audit u
    where u.at >= @since::timestamptz and u.tool <> '' and u.door <> 'operator' and (u.kind = 'outcome' or u.decision = 'refused')
      and (@agent_id = '' or u.agent_id = @agent_id)
    group by u.agent_id
), waiting as (
    select w.agent_id, count(*) filter (where w.state = 'queued') as queued, count(*) filter (where w.state = 'running') as running,
           count(*) filter (where w.state = 'dead') as dead
    from work w
    where w.finished_at is null or w.finished_at >= @since::timestamptz
    group by w.agent_id
), spent as (
    select u.agent_id, sum(u.cost_micros)::bigint as micros, (sum(u.requests) filter (where u.cost_micros is null))::bigint as unpriced
    from usage u
    where u.at >= @today::timestamptz and (@agent_id = '' or u.agent_id = @agent_id)
    group by u.agent_id
), asks as (
    select p.agent_id, count(*) as n from approvals p where p.state = 'pending' and p.expires_at > clock_timestamp() group by p.agent_id
)
select a.id as agent_id,
       case when a.state = 'active' and exists (select from stops s where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id))
            then 'stopped' else a.state end as state,
       coalesce(a.reports_to, '') as reports_to,
       coalesce(c.calls, 0) as calls, coalesce(c.refused, 0) as refused, coalesce(c.failed, 0) as failed, c.last_call_at, coalesce(c.last_error, '') as last_error,
       coalesce(w.queued, 0) as queued, coalesce(w.running, 0) as running, coalesce(w.dead, 0) as dead,
       case when m.agent_id is null then 0 else m.micros end as cost_micros, coalesce(m.unpriced, 0) as unpriced, coalesce(k.n, 0) as asks,
       (select min(s.next_slot) from schedules s where s.agent_id = a.id and s.enabled) as next_at
from agents a
left join calls c on c.agent_id = a.id
left join waiting w on w.agent_id = a.id
left join spent m on m.agent_id = a.id
left join asks k on k.agent_id = a.id
where (@agent_id = '' or a.id = @agent_id) and (@all::boolean or a.state <> 'archived' or a.id = @agent_id)
order by a.state <> 'active', coalesce(w.dead, 0) + coalesce(c.failed, 0) + coalesce(c.refused, 0) desc, a.id
limit 1000
