-- Writes a group of audit rows and, at most once a minute, when a key was last
-- used. $1 is a JSON array whose members are named like the columns.
with rows as (
    select * from json_to_recordset($1::json) as r(
        id uuid, request_id text, door text, agent_id text, credential_id text, method text, tool text,
        category text, decision text, reason text, outcome text, arguments jsonb, duration_us bigint)
), used as (
    update api_keys set last_used_at = now()
    where id in (select credential_id from rows)
      and (last_used_at is null or last_used_at < now() - interval '1 minute')
)
insert into audit (id, request_id, door, agent_id, credential_id, method, tool, category, decision, reason, outcome, arguments, duration_us)
select id, request_id, door, agent_id, credential_id, method, tool, category, decision, reason, outcome, arguments, duration_us
from rows
on conflict (id) do nothing
