-- An agent that @agent may give work to: below it, or above it, or any for an
-- operator. union, not union all: a circle of superiors must end.
with recursive below (id) as (
    select id from agents where id = @agent
    union
    select a.id from agents a join below b on a.reports_to = b.id
), above (id) as (
    select reports_to from agents where id = @agent
    union
    select a.reports_to from agents a join above on a.id = above.id
)
select a.state, a.id not in (select id from below) and not @operator::boolean as above,
       exists (select from stops s where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)) as stopped
from agents a
where a.id = @agent_id and (@operator::boolean or a.id in (select id from below) or a.id in (select id from above))
