-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select id, at as "timestamp", event_type, agent_id, tool, outcome, duration_ms, request_id, credential_id as credential, door,
       -- The gate's steps 5 to 8 answer alike, so they look alike here.
       case when not @operator::boolean and reason in ('denied', 'not_allowed', 'scope') then 'unknown_tool' else reason end as reason,
       case when pg_column_size(arguments) > 2048 then '{"omitted": true}' else arguments end as arguments
from (
    select u.id, u.at, u.agent_id, u.request_id, u.credential_id, u.door, u.reason, u.arguments,
           case when u.door = 'operator' then 'command'
                when u.agent_id = '' then 'login'
                when u.decision = 'refused' then 'refusal'
                else 'call' end as event_type,
           case when u.door = 'operator' then u.method else u.tool end as tool,
           case when u.decision = 'refused' then 'refused' else u.outcome end as outcome,
           round(u.duration_us / 1000.0, 3)::float8 as duration_ms
    from audit u
    where (u.kind = 'outcome' or u.decision = 'refused')
      and (@operator::boolean or u.door <> 'operator' and u.agent_id in (select v.id from visible v))
      and (@agent_id = '' or u.agent_id = @agent_id)
      and (@since::timestamptz is null or u.at >= @since::timestamptz)
      and (@until::timestamptz is null or u.at < @until::timestamptz)
      and (u.at, u.id) < (@before::timestamptz, @before_id::uuid)
) events
where (@kind = '' or event_type = @kind)
  and (@tool = '' or tool = @tool)
  and (cardinality(@outcomes::text[]) = 0 or outcome = any (@outcomes::text[]))
  and (@skill = '' or @skill in (arguments ->> 'skill_id', arguments ->> 'skill_name', arguments ->> 'skill'))
order by at desc, id desc
offset @offset
limit @limit
