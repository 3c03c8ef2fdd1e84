-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select s.id, s.name, s.agent_id, s.created_by, s.cron, s.timezone, left(s.task, 200) as task, s.notify,
       case when not s.enabled then 'paused'
            when s.next_slot is null then 'finished'
            when a.state <> 'active' or exists (select from stops t where t.resumed_at is null and (t.agent_id is null or t.agent_id in (s.agent_id, s.created_by)))
                then 'suspended'
            else 'active' end as state,
       case when s.enabled then s.next_slot end as next_run,
       last.slot as last_run, coalesce(last.state, '') as last_state, coalesce(last.error, '') as last_error,
       coalesce(last.delivery, '') as last_delivery, counts.runs, counts.failures
from schedules s
join agents a on a.id = s.agent_id
left join lateral (
    select f.slot, coalesce(w.state, f.state) as state, left(coalesce(nullif(w.error, ''), n.error), 500) as error,
           case when n.id is null then '' when n.finished_at is null then 'sending' when n.state = 'done' then 'delivered' else 'failed' end as delivery
    from firings f left join work w on w.id = f.work_id
        left join work n on n.from_agent = s.created_by and n.idempotency_key = 'notice/' || w.id
    where f.schedule_id = s.id
    order by f.slot desc
    limit 1
) last on true
cross join lateral (
    select count(*) filter (where f.state = 'queued') as runs, count(*) filter (where w.state = 'dead') as failures
    from firings f left join work w on w.id = f.work_id
    where f.schedule_id = s.id and f.slot > now() - interval '30 days'
) counts
where (s.agent_id in (select id from visible) or s.created_by in (select id from visible))
  and (@agent_id = '' or s.agent_id = @agent_id) and (s.enabled or not @enabled_only::boolean) and s.id > @after
order by s.id
limit @limit
