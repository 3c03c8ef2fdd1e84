-- all agents: for an operator.
select id as key_id, scopes,
       case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end as state
from api_keys
where id = @key_id and agent_id = @agent_id
