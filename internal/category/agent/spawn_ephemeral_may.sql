-- A pattern is a tool's name, a beginning with * at the end, or *.
with maker as (
    select * from agents where id = @agent for update
), wanted as (
    select t.name,
           exists (select from unnest(m.allowed_tools) p where p = t.name or right(p, 1) = '*' and starts_with(t.name, left(p, -1)))
           and not exists (select from unnest(m.denied_tools) p where p = t.name or right(p, 1) = '*' and starts_with(t.name, left(p, -1))) as allowed
    from maker m cross join unnest(@tools::text[]) as t (name)
)
select (select count(*) from agents a where a.reports_to = @agent and a.ephemeral and a.state <> 'archived') as live,
       array(select name from wanted where not allowed order by name) as missing
from maker
