-- all agents: the link says which request.
select coalesce(c.destination, '') as destination, p.id, p.kind, p.agent_id, p.tool, p.arguments::text as arguments, p.because,
       case when p.state = 'pending' and p.expires_at <= clock_timestamp() then 'expired' else p.state end as state, p.reason,
       coalesce(p.decided_by, '') as decided_by, p.expires_at, a.budget_cents,
       coalesce((select sum(u.cost_micros) from usage_by_user u
                 where u.level = 3 and u.agent_id = a.id and u.at = date_trunc('month', clock_timestamp() at time zone 'UTC') at time zone 'UTC'), 0)::bigint as spent_micros
from approvals p join agents a on a.id = p.agent_id left join approval_cards c on c.approval_id = p.id
where p.id = @id and p.agent_id = @agent
