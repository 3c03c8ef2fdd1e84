-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
), found as (
    select r.id, r.state from reminders r where r.id = @id and r.agent_id in (select id from visible)
), cancelled as (
    update reminders r set state = 'cancelled', ended_at = clock_timestamp()
    from found
    where r.id = found.id and r.state = 'pending'
    returning r.id
)
select found.state as before, exists (select from cancelled) as cancelled from found
