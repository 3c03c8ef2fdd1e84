-- all agents: for an operator.
with known as (
    select a.*, case when a.state = 'pending' and a.expires_at <= clock_timestamp() then 'expired' else a.state end as shown
    from approvals a
), numbered as (
    select k.*, row_number() over (order by k.shown <> 'pending', case when k.shown = 'pending' then k.expires_at end,
                                            coalesce(k.decided_at, k.expires_at) desc, k.id) as place
    from known k
    where (@agent_id = '' or k.agent_id = @agent_id) and (@state = 'all' or k.shown = @state)
)
select id as approval_id, shown as state, kind, agent_id, tool, arguments, because, task_id, reason, created_at, expires_at,
       coalesce(decided_by, '') as decided_by, decided_at, covers, covers_until
from numbered
where @after = '' or place > (select n.place from numbered n where n.id = @after)
order by place
limit @limit
