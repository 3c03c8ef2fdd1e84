-- all agents: for an operator.
select id as key_id, agent_id, name, hint,
       case when revoked_at is not null then 'revoked'
            when expires_at <= @now::timestamptz then 'expired'
            else 'active' end as state,
       scopes, created_at, expires_at, revoked_at, last_used_at
from api_keys
where (@agent_id = '' or agent_id = @agent_id)
  and (@all::boolean or (revoked_at is null and (expires_at is null or expires_at > @now::timestamptz)))
order by agent_id, created_at, id
limit 5000
