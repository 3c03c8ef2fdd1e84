-- all agents: whoever decides has the scope approve or operator.
-- Pending ones first: of several with the same beginning they are meant.
select id as approval_id, state, kind, agent_id, credential_id as credential, tool, arguments, because, task_id, reason,
       created_at, expires_at, coalesce(decided_by, '') as decided_by, decided_at, covers, covers_until
from (
    select a.id, a.kind, a.agent_id, a.credential_id, a.tool, a.arguments, a.because, a.task_id, a.reason, a.created_at, a.expires_at,
           a.decided_by, a.decided_at, a.covers, a.covers_until,
           case when a.state = 'pending' and a.expires_at <= clock_timestamp() then 'expired' else a.state end as state
    from approvals a
    where starts_with(a.id, @prefix)
) f
order by id = @prefix desc, state = 'pending' desc, created_at desc, id
limit @most
