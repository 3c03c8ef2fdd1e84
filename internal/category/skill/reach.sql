-- union, not union all: a circle of superiors must end.
with recursive visible (id) as (
    select id from agents where @operator::boolean or id = @agent
    union
    select a.id from agents a join visible v on a.reports_to = v.id
)
select exists (select from visible where id = @agent_id) as reached
