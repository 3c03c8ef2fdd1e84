-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select s.id, s.agent_id, s.created_by, s.name, s.cron, s.timezone, s.task, s.enabled, s.misfire, s.overlap, s.jitter_seconds, s.notify, s.scopes, s.narrowed_by, s.next_slot,
       coalesce((select w.narrowed_by from work w where w.id = @run::uuid), '{}') as run_narrowed_by
from schedules s
where s.created_by in (select id from visible) and (s.id = @id or s.name = @name and @name <> '')
order by s.agent_id <> @agent, s.id
for update of s
