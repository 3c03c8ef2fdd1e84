-- +goose Up
-- Whose claim it is: a reservation whose answer was lost can be asked for
-- again by the call that made it, and is given back by that call alone.
alter table idempotency add column request_id text not null default '';
alter table approvals add column used_by text not null default ''; -- the request that used it
create index approvals_used_by on approvals (used_by) where state = 'used' and finished_at is null;

-- As before; and the same request again finds what it reserved, and requests
-- for different calls of one agent are counted one after the other, so that many
-- at once do not pass the limit together.
-- +goose StatementBegin
create or replace function gate_reserve(call jsonb, rows jsonb) returns jsonb language plpgsql as $$
declare
    agent      text  := call ->> 'agent_id';
    credential text  := call ->> 'credential_id';
    args_hash  bytea := decode(call ->> 'arguments_hash', 'hex');
    tool_hash  bytea := decode(call ->> 'definition', 'hex');
    ticket     text  := call ->> 'idempotency_key';
    request    text  := call ->> 'request_id';
    first      idempotency;
    approval   approvals;
    used       text;
begin
    if ticket is not null then
        perform pg_advisory_xact_lock(hashtextextended(agent || chr(1) || credential || chr(1) || ticket, 1));
        select * into first from idempotency i where i.agent_id = agent and i.credential_id = credential and i.key = ticket;
        if found and first.request_id = request and first.finished_at is null then
            return jsonb_build_object('verdict', 'go', 'approval_id', -- this very call claimed it; the answer was lost on the way
                (select p.id from approvals p where p.agent_id = agent and p.used_by = request and p.state = 'used'));
        elsif found and first.started_at > now() - interval '24 hours' then
            if first.tool <> call ->> 'tool' or first.arguments_hash <> args_hash then
                return '{"verdict": "conflict"}';
            elsif first.finished_at is not null then
                return jsonb_build_object('verdict', 'replay', 'outcome', first.outcome);
            elsif first.deadline > now() then
                return '{"verdict": "running"}';
            end if;
            return '{"verdict": "unknown"}';
        end if;
    end if;
    if (call ->> 'limited')::boolean then
        return '{"verdict": "limited"}';
    end if;
    if call ->> 'because' is not null then
        perform pg_advisory_xact_lock(hashtextextended(agent || chr(1) || (call ->> 'tool') || chr(1) || (call ->> 'arguments_hash'), 2));
        select * into approval from approvals p
        where p.agent_id = agent and p.tool = call ->> 'tool' and p.kind = 'call' and p.state = 'approved'
          and p.covers_until > clock_timestamp() and p.definition = tool_hash and p.covers is not null
          -- Not @>, which finds a list in every longer one.
          and not exists (select from jsonb_each(p.covers) c where (call -> 'arguments' -> c.key) is distinct from c.value)
        limit 1;
        if not found then
            select * into approval from approvals p
            where p.agent_id = agent and p.tool = call ->> 'tool' and p.kind = 'call'
              and p.definition = tool_hash and p.arguments_hash = args_hash and p.expires_at > clock_timestamp() and p.state not in ('cancelled', 'revoked')
            order by p.created_at desc limit 1 for update; -- whoever decides, stops or revokes at this moment comes first or later
            if not found or approval.state = 'used' and approval.finished_at is not null then
                perform pg_advisory_xact_lock(hashtextextended(agent, 3)); -- of many at once only so many find room
                if (select count(*) from approvals p where p.agent_id = agent and p.state = 'pending' and p.expires_at > clock_timestamp()) >= 20 then
                    return '{"verdict": "crowded"}';
                end if;
                insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, arguments, because, request_id, expires_at)
                values (call ->> 'approval_id', agent, credential, call ->> 'tool', tool_hash, args_hash, call -> 'shown', call ->> 'because',
                        call ->> 'request_id', clock_timestamp() + (call ->> 'life')::interval)
                returning * into approval;
            end if;
            if approval.state = 'pending' and call ->> 'accepted' = approval.id then -- the person at the client said yes just now
                update approvals set state = 'approved', decided_by = 'client', decided_at = clock_timestamp() where id = approval.id returning * into approval;
            end if;
            if approval.state in ('pending', 'denied') then
                return jsonb_build_object('verdict', approval.state, 'id', approval.id, 'reason', approval.reason, 'until', approval.expires_at);
            elsif approval.state = 'used' and approval.used_by = request then -- by this very call, as above
                return jsonb_build_object('verdict', 'go', 'approval_id', approval.id);
            elsif approval.state = 'used' then
                return jsonb_build_object('verdict', case when approval.used_at > clock_timestamp() - interval '5 minutes' then 'running' else 'unknown' end);
            end if;
            update approvals set state = 'used', used_at = clock_timestamp(), used_by = request where id = approval.id and state = 'approved' returning id into used;
        end if;
    end if;
    if ticket is not null then
        insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, deadline, request_id)
        values (agent, credential, ticket, call ->> 'tool', args_hash, (call ->> 'deadline')::timestamptz, request)
        on conflict (agent_id, credential_id, key) do update set tool = excluded.tool, arguments_hash = excluded.arguments_hash,
            started_at = now(), deadline = excluded.deadline, request_id = excluded.request_id, finished_at = null, outcome = null;
    end if;
    perform audit_append(rows, coalesce((call ->> 'again')::boolean, false));
    return jsonb_build_object('verdict', 'go', 'approval_id', used);
end
$$;
-- +goose StatementEnd

-- As before; and what another request holds by now is not touched.
-- +goose StatementBegin
create or replace function gate_settle(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
begin
    -- A group is written whole or not at all. To release a key or an approval a
    -- second time could take it from another call that has it by now.
    if again and exists (select from audit a where a.id = (rows -> 0 ->> 'id')::uuid) then
        return;
    end if;
    -- What says that nothing was done may be tried again with the same key and
    -- the same approval.
    delete from idempotency i using jsonb_array_elements(finished) f
    where (f ->> 'release')::boolean and i.finished_at is null
      and i.agent_id = f ->> 'agent_id' and i.credential_id = f ->> 'credential_id' and i.key = f ->> 'key'
      and i.request_id = coalesce(f ->> 'request_id', i.request_id);
    update idempotency i set finished_at = clock_timestamp(), outcome = f ->> 'outcome'
    from jsonb_array_elements(finished) f
    where i.agent_id = f ->> 'agent_id' and i.credential_id = f ->> 'credential_id' and i.key = f ->> 'key' and i.finished_at is null
      and i.request_id = coalesce(f ->> 'request_id', i.request_id);
    update approvals p set state = 'approved', used_at = null, used_by = ''
    from jsonb_array_elements(finished) f
    where (f ->> 'release')::boolean and p.agent_id = f ->> 'agent_id' and p.state = 'used' and p.finished_at is null
      and (p.id = f ->> 'approval_id' and p.used_by = coalesce(f ->> 'request_id', p.used_by) or p.used_by <> '' and p.used_by = f ->> 'request_id');
    update approvals p set finished_at = clock_timestamp()
    from jsonb_array_elements(finished) f
    where not (f ->> 'release')::boolean and p.id = f ->> 'approval_id' and p.finished_at is null;
    -- Before the chain's head is locked, as an operator's revocation does: in the
    -- other order the two could wait for each other.
    update api_keys k set last_used_at = now()
    where k.id in (select value ->> 'credential_id' from jsonb_array_elements(rows))
      and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute');
    perform audit_append(rows, again);
end
$$;
-- +goose StatementEnd
