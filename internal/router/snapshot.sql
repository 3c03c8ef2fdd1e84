-- Who calls and what the gate decides on, in one round trip.
-- $1 hash of the key, $2 agent of the local door ('' otherwise), $3 and $4 the
-- local door's credential and scopes.
select c.id                       as credential_id,
       c.scopes,
       a.id                       as agent_id,
       a.state,
       a.allowed_tools,
       a.denied_tools,
       a.approval_required_tools  as approval_required,
       a.scoped_tools,
       s.id is not null           as stopped,
       coalesce(s.everyone, false) as stop_everyone,
       coalesce(s.reason, '')     as stop_reason,
       coalesce(s.stopped_at, now()) as stop_since
from (
    select id, agent_id, scopes
    from api_keys
    where hash = $1::bytea and revoked_at is null and (expires_at is null or expires_at > now())
    union all
    select $3::text, $2::text, $4::text[] where $2::text <> ''
) c
join agents a on a.id = c.agent_id and a.state <> 'archived'
left join lateral (
    select id, agent_id is null as everyone, reason, stopped_at
    from stops
    where resumed_at is null and (agent_id is null or agent_id = a.id)
    order by agent_id nulls first
    limit 1
) s on true
