insert into work (id, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, root_id, session, notify, max_attempts)
select @new, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, @new, session, notify, max_attempts
from work
where id = @id and state in ('dead', 'cancelled')
returning id, agent_id as agent, state
