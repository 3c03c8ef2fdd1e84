-- all agents: the callers are what this statement finds out.
-- Who calls and everything that the gate decides on, for all callers that came
-- together, in one round trip. $1 is a JSON array of
--   n                   the place in the array, from 0
--   hash                of a key, in hex, or ''
--   agent               of a caller known otherwise, or ''
--   issuer, subject     of an access token, or ''
--   credential, scopes  of a caller that has no key
--   tool, class         the tool and its rate class, or ''
--   burst, rate         of the class, per minute, unless the agent has its own
--   flood_burst, flood_rate  of one credential
--   peek                takes no token and only says how long the wait would be
-- An attempt takes a token, whatever becomes of it.
with asked as materialized (
    select * from jsonb_to_recordset($1::jsonb) as a (n integer, hash text, agent text, issuer text, subject text,
        credential text, scopes jsonb, tool text, class text, burst float8, rate float8, flood_burst float8, flood_rate float8, peek boolean)
), caller as (
    select q.n, k.id, k.agent_id, k.scopes, null::text[] as ceiling
    from asked q join api_keys k on k.hash = decode(q.hash, 'hex')
    where q.hash <> '' and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    union all
    select q.n, q.credential, q.agent, array(select jsonb_array_elements_text(q.scopes)), null
    from asked q where q.agent <> ''
    union all
    select q.n, q.credential, o.agent_id, array(select jsonb_array_elements_text(q.scopes)), o.scopes
    from asked q join oauth_subjects o on o.issuer = q.issuer and o.subject = q.subject
    where q.issuer <> ''
), known as materialized (
    select q.n, q.tool, q.class, q.peek, c.id as credential_id, c.scopes, c.ceiling, a.id as agent_id,
           'credential ' || c.agent_id || ' ' || c.id                          as flood_key,
           coalesce((a.limits #>> '{credential,burst}')::float8, q.flood_burst)     as flood_burst,
           coalesce((a.limits #>> '{credential,per_minute}')::float8, q.flood_rate) as flood_rate,
           'class ' || a.id || ' ' || q.class                                  as class_key,
           coalesce((a.limits #>> array[q.class, 'burst'])::float8, q.burst)        as class_burst,
           coalesce((a.limits #>> array[q.class, 'per_minute'])::float8, q.rate)    as class_rate,
           row_number() over (partition by q.peek, c.agent_id, c.id order by q.n)   as flood_place,
           row_number() over (partition by q.peek, a.id, q.class order by q.n)      as class_place
    from caller c join asked q using (n) join agents a on a.id = c.agent_id and a.state <> 'archived'
), wanted as (
    select key, max(burst) as burst, max(rate) as rate, count(*) as n
    from (
        select flood_key as key, flood_burst as burst, flood_rate as rate from known where not peek
        union all
        select class_key, class_burst, class_rate from known where not peek and class <> ''
    ) w
    group by key
), drawn as materialized (
    select * from bucket_draw((select coalesce(jsonb_agg(to_jsonb(w) order by w.key), '[]') from wanted w))
)
select k.n,
       k.credential_id,
       k.scopes,
       k.ceiling,
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
       k.tool <> '' and cardinality(a.scoped_tools) > 0 and exists (
           select from approvals g
           where g.agent_id = a.id and g.kind = 'grant' and g.state = 'approved' and g.tool = k.tool and g.covers_until > now()
       )                                 as granted,
       coalesce(case when k.peek then bucket_wait(k.flood_key, k.flood_burst, k.flood_rate)
           when k.flood_place > f.granted then coalesce(greatest(0, k.flood_place - f.granted - f.tokens_left) * 60000 / nullif(k.flood_rate, 0), 86400000)
           end, 0)::bigint as flood_ms, -- a bucket that nothing flows into is empty for a day, not full
       coalesce(case when k.class = '' then 0
           when k.peek then bucket_wait(k.class_key, k.class_burst, k.class_rate)
           when k.class_place > r.granted then coalesce(greatest(0, k.class_place - r.granted - r.tokens_left) * 60000 / nullif(k.class_rate, 0), 86400000)
           end, 0)::bigint as class_ms,
       gate_money(a.id, k.tool)          as money
from known k
join agents a on a.id = k.agent_id
left join drawn f on f.bucket = k.flood_key
left join drawn r on r.bucket = k.class_key
left join lateral (
    select id, agent_id is null as everyone, reason, stopped_at
    from stops
    where resumed_at is null and (agent_id is null or agent_id = a.id)
    order by agent_id nulls first
    limit 1
) s on true
