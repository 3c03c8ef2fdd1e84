-- all agents: for an operator.
select a.id as agent_id, a.state,
       exists (select from stops s
               where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)) as stopped,
       a.role, coalesce(a.reports_to, '') as reports_to, a.allowed_tools as allowed, a.denied_tools as denied,
       k.keys, k.last_used_at
from agents a
cross join lateral (
    select count(*) filter (where revoked_at is null and (expires_at is null or expires_at > @now::timestamptz)) as keys,
           max(last_used_at) as last_used_at
    from api_keys
    where agent_id = a.id
) k
where (@all::boolean or a.state <> 'archived') and a.id > @after
order by a.id
limit @limit
