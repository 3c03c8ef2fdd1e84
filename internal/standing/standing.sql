-- all agents: the caller is what this statement finds out.
-- Who calls and everything that the gate decides on, in one round trip. It also
-- takes a token from the buckets that the call draws on: an attempt counts. With
-- $13 it takes none and only says how long the wait would be.
--  $1 hash of the key, or null    $2 agent of a caller known otherwise, or ''
--  $3 id and $4 scopes of that caller's credential
--  $5 tool, or ''                 $6 its rate class, or ''
--  $7, $8 burst and rate per minute of the class, unless the agent has its own
--  $9, $10 burst and rate per minute of one credential
--  $11, $12 issuer and subject of an access token, or ''
with caller as (
    select id, agent_id, scopes, null::text[] as ceiling from api_keys
    where hash = $1::bytea and revoked_at is null and (expires_at is null or expires_at > now())
    union all
    select $3::text, $2::text, $4::text[], null where $2::text <> ''
    union all
    select $3::text, agent_id, $4::text[], scopes from oauth_subjects
    where $11::text <> '' and issuer = $11::text and subject = $12::text
)
select c.id                              as credential_id,
       c.scopes,
       c.ceiling,
       a.id                              as agent_id,
       a.state,
       a.allowed_tools,
       a.denied_tools,
       a.approval_required_tools         as approval_required,
       a.scoped_tools,
       a.rules::text                     as rules,
       a.approver,
       extract(epoch from a.approval_life)::bigint as approval_seconds,
       s.id is not null                  as stopped,
       coalesce(s.everyone, false)       as stop_everyone,
       coalesce(s.reason, '')            as stop_reason,
       coalesce(s.stopped_at, now())     as stop_since,
       $5::text <> '' and cardinality(a.scoped_tools) > 0 and exists (
           select from approvals g
           where g.agent_id = a.id and g.kind = 'grant' and g.state = 'approved' and g.tool = $5::text and g.covers_until > now()
       )                                 as granted,
       coalesce(case when $13::boolean
           then bucket_wait(l.flood_key, l.flood_burst, l.flood_rate)
           else bucket_take(l.flood_key, l.flood_burst, l.flood_rate) end, 0)::bigint as flood_ms,
       coalesce(case when $6::text = '' then 0 when $13::boolean
           then bucket_wait(l.class_key, l.class_burst, l.class_rate)
           else bucket_take(l.class_key, l.class_burst, l.class_rate) end, 0)::bigint as class_ms
from caller c
join agents a on a.id = c.agent_id and a.state <> 'archived'
cross join lateral (
    select 'credential ' || c.agent_id || ' ' || c.id                            as flood_key,
           coalesce((a.limits #>> '{credential,burst}')::float8, $9::float8)       as flood_burst,
           coalesce((a.limits #>> '{credential,per_minute}')::float8, $10::float8) as flood_rate,
           'class ' || a.id || ' ' || $6::text                                     as class_key,
           coalesce((a.limits #>> array[$6::text, 'burst'])::float8, $7::float8)      as class_burst,
           coalesce((a.limits #>> array[$6::text, 'per_minute'])::float8, $8::float8) as class_rate
) l
left join lateral (
    select id, agent_id is null as everyone, reason, stopped_at
    from stops
    where resumed_at is null and (agent_id is null or agent_id = a.id)
    order by agent_id nulls first
    limit 1
) s on true
