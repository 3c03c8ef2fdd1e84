-- all agents: for an operator.
with before as (select id, revoked_at from api_keys where id = @key_id for update)
update api_keys k
set revoked_at = coalesce(before.revoked_at, @now::timestamptz)
from before
where k.id = before.id
returning k.id as key_id, k.agent_id, k.revoked_at, before.revoked_at is null as changed
