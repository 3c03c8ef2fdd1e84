-- all agents: for an operator.
select a.id as agent_id, a.state, a.allowed_tools, a.denied_tools, a.approval_required_tools, a.scoped_tools,
       coalesce(k.id, '') as key_id,
       case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'active' end as key_state,
       coalesce(k.scopes, '{}') as scopes,
       mine.id is not null as agent_stopped, coalesce(mine.stopped_at, 'epoch') as agent_stop_since,
       everyone.id is not null as all_stopped, coalesce(everyone.stopped_at, 'epoch') as all_stop_since,
       coalesce(everyone.reason, mine.reason, '') as stop_reason
from agents a
left join api_keys k on k.id = @key_id and k.agent_id = a.id
left join stops mine on mine.agent_id = a.id and mine.resumed_at is null
left join stops everyone on everyone.agent_id is null and everyone.resumed_at is null
where a.id = @agent_id
