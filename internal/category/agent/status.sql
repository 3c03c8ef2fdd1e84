-- Calls of the agent itself; what an operator did to it has the door operator.
-- In the order of the chain, which is that of time, so that the newest are found
-- by the key without reading the others.
with calls as not materialized (
    -- An agent must not learn from its record which tools are hidden from it.
    select u.at, u.seq, u.tool, u.decision, u.outcome,
           case when u.decision = 'refused' and u.reason in ('denied', 'not_allowed', 'scope') then 'unknown_tool' else u.reason end as reason,
           round(u.duration_us / 1000.0, 3) as duration_ms,
           -- What a tool refuses, such as a chat that is not open, did not fail.
           u.decision = 'refused' or u.outcome = 'fault' and u.reason = 'denied' as refused,
           u.outcome = 'invalid' or u.outcome = 'fault' and u.reason <> 'denied' as failed
    from audit u
    where u.agent_id = @agent_id and u.tool <> '' and u.door <> 'operator' and (u.kind = 'outcome' or u.decision = 'refused')
),
shown_calls as (
    select at, seq, tool, decision, outcome, reason, duration_ms from calls
    order by seq desc limit @rows
),
shown_errors as (
    select at, seq, tool, decision, outcome, reason, duration_ms from calls
    where at >= @since::timestamptz and (refused or failed)
    order by seq desc limit @rows
)
select a.id as agent_id, a.display_name, a.role, a.state,
       stop.shown is not null as stopped, coalesce(stop.shown, '[]') as stops,
       coalesce(a.reports_to, '') as reports_to,
       (select count(*) from agents r where r.reports_to = a.id and r.state <> 'archived') as direct_reports,
       a.model, a.icon, a.trigger, coalesce(a.created_by, '') as created_by, a.version,
       a.fallback_model, a.api_mode, a.budget_cents, a.max_concurrent, a.heartbeat_enabled, a.heartbeat_cron,
       soul.shown as soul,
       key.shown as keys, day.shown as last_day, waiting.shown as queue, coming.shown as agenda, today.shown as cost_today,
       (select coalesce(jsonb_agg(to_jsonb(c) - 'seq' order by c.seq desc), '[]') from shown_calls c) as last_calls,
       (select coalesce(jsonb_agg(to_jsonb(e) - 'seq' order by e.seq desc), '[]') from shown_errors e) as last_errors,
       a.created_at, a.updated_at
from agents a
left join lateral (
    select jsonb_build_object('version', p.version, 'bytes', octet_length(p.content), 'written_by', p.written_by, 'written_at', p.written_at,
               'sha256', encode(sha256(convert_to(p.content, 'UTF8')), 'hex'),
               'content', case when @soul::boolean then p.content else '' end) as shown
    from agent_souls p
    where p.agent_id = a.id
    order by p.version desc
    limit 1
) soul on true
cross join lateral (
    select jsonb_agg(jsonb_build_object(
               'scope', case when s.agent_id is null then 'all' else 'agent' end,
               'reason', s.reason, 'since', s.stopped_at) order by s.stopped_at) as shown
    from stops s
    where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)
) stop
cross join lateral (
    select jsonb_build_object(
               'active', count(*) filter (where k.revoked_at is null and (k.expires_at is null or k.expires_at > @now::timestamptz)),
               'expired', count(*) filter (where k.revoked_at is null and k.expires_at <= @now::timestamptz),
               'revoked', count(*) filter (where k.revoked_at is not null),
               'last_used_at', max(k.last_used_at)) as shown
    from api_keys k
    where k.agent_id = a.id
) key
cross join lateral (
    select jsonb_build_object(
               'calls', count(*),
               'refused', count(*) filter (where refused),
               'failed', count(*) filter (where failed)) as shown
    from calls
    where at >= @since::timestamptz
) day
cross join lateral (
    select jsonb_build_object(
               'queued', count(*) filter (where w.state = 'queued'),
               'running', count(*) filter (where w.state = 'running'),
               'oldest_at', min(w.run_at) filter (where w.state = 'queued' and w.run_at <= @now::timestamptz),
               'done_24h', count(*) filter (where w.state = 'done'),
               'dead_24h', count(*) filter (where w.state = 'dead')) as shown
    from work w
    where w.agent_id = a.id and (w.finished_at is null or w.finished_at >= @since::timestamptz)
) waiting
cross join lateral (
    select jsonb_build_object('schedules', count(*), 'next_at', min(s.next_slot),
               'reminders', (select count(*) from reminders r where r.agent_id = a.id and r.state = 'pending')) as shown
    from schedules s
    where s.agent_id = a.id and s.enabled
) coming
cross join lateral (
    select jsonb_build_object(
               'since', @today::timestamptz,
               'cost_micro_usd', case when count(*) = 0 then 0 else sum(u.cost_micros) end,
               'requests', coalesce(sum(u.requests), 0),
               'unpriced', coalesce(sum(u.requests) filter (where u.cost_micros is null), 0)) as shown
    from usage u
    where u.agent_id = a.id and u.at >= @today::timestamptz
) today
where a.id = @agent_id and (@operator::boolean or a.id in (select agents_under(@agent)))
