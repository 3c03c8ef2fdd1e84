-- What an ephemeral agent costs is its maker's to pay.
with recursive makers (id, reports_to, ephemeral, n) as (
    select id, reports_to, ephemeral, 0 from agents where id = @agent
    union all
    select a.id, a.reports_to, a.ephemeral, m.n + 1 from agents a join makers m on a.id = m.reports_to where m.ephemeral and m.n < 20
)
select a.model, coalesce((select s.content from agent_souls s where s.agent_id = a.id order by s.version desc limit 1), '') as soul,
       (select m.id from makers m order by m.n desc limit 1) as payer
from agents a
where a.id = @agent
