-- all agents: whoever sends cards sends everybody's.
-- Cards that are due, each for one sender at a time. What is no longer pending
-- needs none.
with due as (
    select c.approval_id
    from approval_cards c join approvals p on p.id = c.approval_id
    where c.sent_at is null and c.claimed_until < clock_timestamp() and c.attempts < @most
      and p.state = 'pending' and p.expires_at > clock_timestamp() and (@only = '' or c.approval_id = @only)
    order by p.expires_at
    limit @batch
    for update of c skip locked
), claimed as (
    update approval_cards c
    set attempts = c.attempts + 1, claimed_until = clock_timestamp() + @lease * interval '1 second'
    from due
    where c.approval_id = due.approval_id
    returning c.approval_id, c.destination
)
select c.destination, p.id, p.kind, p.agent_id, p.tool, p.arguments::text as arguments, p.because, p.state, p.reason,
       coalesce(p.decided_by, '') as decided_by, p.expires_at, a.budget_cents,
       coalesce((select sum(u.cost_micros) from usage_by_user u
                 where u.level = 3 and u.agent_id = a.id and u.at = date_trunc('month', clock_timestamp() at time zone 'UTC') at time zone 'UTC'), 0)::bigint as spent_micros
from claimed c join approvals p on p.id = c.approval_id join agents a on a.id = p.agent_id
