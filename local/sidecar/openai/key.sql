-- all agents: finds out which agent a key belongs to.
select k.id as credential,
       k.scopes,
       coalesce(k.last_used_at < now() - interval '1 minute', true) as unnoted,
       a.id as agent,
       a.state,
       exists (select from stops s where s.resumed_at is null and (s.agent_id is null or s.agent_id = a.id)) as stopped,
       coalesce((select mode from inference_settings), 'auto') as mode
from api_keys k
join agents a on a.id = k.agent_id
where k.hash = @hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and a.state <> 'archived'
