-- +goose Up
-- What the gate decides on besides the lists: argument rules, limits,
-- approvals and grants, and what makes a repeated write harmless.

alter table agents
    add column rules         jsonb not null default '[]',        -- [[capabilities.policy]]
    add column approver      text not null default 'operator' check (approver in ('operator', 'client', 'none')),
    add column approval_life interval not null default '15 minutes',
    add column grant_life    interval not null default '1 hour',
    add column limits        jsonb not null default '{}';        -- {"read": {"per_minute": 600, "burst": 100}}

-- Token buckets. Unlogged: a crash fills them, which harms nobody, and a commit
-- that touches nothing else waits for no disk.
create unlogged table buckets (
    key    text primary key,
    tokens double precision not null,
    taken  boolean not null,
    at     timestamptz not null
) with (fillfactor = 20); -- every call rewrites rows; they stay in their page

-- Takes one token and gives the milliseconds to wait: 0 when there was one.
-- +goose StatementBegin
create function bucket_take(bucket text, burst double precision, per_minute double precision)
returns double precision language sql volatile as $$
    insert into buckets as b values (bucket, greatest(burst, 1) - 1, true, clock_timestamp())
    on conflict (key) do update set
        tokens = least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60)
               - case when least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60) >= 1 then 1 else 0 end,
        taken = least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60) >= 1,
        at = clock_timestamp()
    returning case when taken then 0 else (1 - tokens) * 60000 / nullif(per_minute, 0) end
$$;
-- +goose StatementEnd

-- The milliseconds that bucket_take would give, taking nothing. A bucket that is
-- not there is full.
-- +goose StatementBegin
create function bucket_wait(bucket text, burst double precision, per_minute double precision)
returns double precision language sql volatile as $$
    select greatest(0, 1 - least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60))
           * 60000 / nullif(per_minute, 0)
    from buckets b where b.key = bucket
$$;
-- +goose StatementEnd

-- Draws on several buckets at once: as many tokens as there are of those wanted.
-- The buckets come in the order of their keys, so that two draws never wait for
-- each other in a circle. Gives how many each had, and what is left.
-- +goose StatementBegin
create function bucket_draw(wanted jsonb)
returns table (bucket text, granted double precision, tokens_left double precision) language plpgsql as $$
declare
    w record;
    b buckets;
begin
    for w in select * from jsonb_to_recordset(wanted) as r (key text, burst double precision, rate double precision, n integer) loop
        insert into buckets values (w.key, greatest(w.burst, 1), true, clock_timestamp()) on conflict (key) do nothing;
        select * into b from buckets where key = w.key for update;
        tokens_left := least(greatest(w.burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * w.rate / 60);
        granted := least(floor(tokens_left), w.n);
        tokens_left := tokens_left - granted;
        update buckets set tokens = tokens_left, at = clock_timestamp() where key = w.key;
        bucket := w.key;
        return next;
    end loop;
end
$$;
-- +goose StatementEnd

-- A person's decision about one call, or about a tool for some time. kind
-- 'grant' is what capability_request asks for: leave to use a scoped tool.
create table approvals (
    id             text primary key,
    kind           text not null default 'call' check (kind in ('call', 'grant')),
    agent_id       text not null references agents (id),
    credential_id  text not null,
    tool           text not null,
    definition     bytea not null,                 -- SHA-256 of the tool as it was published
    arguments_hash bytea not null,                 -- SHA-256 of the normalised arguments
    arguments      jsonb not null default '{}',    -- redacted, for the person who decides
    because        text not null default '',       -- the list or rule that asks
    task_id        text not null default '',
    request_id     text not null default '',
    state          text not null default 'pending' check (state in ('pending', 'approved', 'denied', 'used', 'cancelled', 'revoked')),
    reason         text not null default '',
    created_at     timestamptz not null default now(),
    expires_at     timestamptz not null,
    decided_by     text,
    decided_at     timestamptz,
    used_at        timestamptz,
    finished_at    timestamptz,
    covers         jsonb,                          -- arguments that must be equal, for a durable approval
    covers_until   timestamptz
);
create index approvals_by_call on approvals (agent_id, tool, arguments_hash, created_at desc);
create index approvals_durable on approvals (agent_id, tool, covers_until) where covers_until is not null;
create index approvals_pending on approvals (expires_at) where state = 'pending';

-- The first outcome of a write, under the key that its caller gave it.
create table idempotency (
    agent_id       text not null,
    credential_id  text not null,
    key            text not null,
    tool           text not null,
    arguments_hash bytea not null,
    started_at     timestamptz not null default now(),
    deadline       timestamptz not null,           -- after it nobody works on the call any more
    finished_at    timestamptz,
    outcome        text,                           -- JSON, to be given again byte for byte
    primary key (agent_id, credential_id, key)
);
create index idempotency_by_age on idempotency (started_at);

-- Everything between the decision and the dispatch, in one transaction and one
-- round trip: the idempotency key is claimed, an approval is used or asked for,
-- the decision is recorded. verdict says how it went:
--   go · replay (outcome) · conflict · running · unknown · limited ·
--   pending (id, until) · denied (id, reason) · crowded
-- +goose StatementBegin
create function gate_reserve(call jsonb, rows jsonb) returns jsonb language plpgsql as $$
declare
    agent      text  := call ->> 'agent_id';
    credential text  := call ->> 'credential_id';
    args_hash  bytea := decode(call ->> 'arguments_hash', 'hex');
    tool_hash  bytea := decode(call ->> 'definition', 'hex');
    ticket     text  := call ->> 'idempotency_key';
    first      idempotency;
    approval   approvals;
    used       text;
begin
    if ticket is not null then
        perform pg_advisory_xact_lock(hashtextextended(agent || chr(1) || credential || chr(1) || ticket, 1));
        select * into first from idempotency i where i.agent_id = agent and i.credential_id = credential and i.key = ticket;
        if found and first.started_at > now() - interval '24 hours' then
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
            elsif approval.state = 'used' then
                return jsonb_build_object('verdict', case when approval.used_at > clock_timestamp() - interval '5 minutes' then 'running' else 'unknown' end);
            end if;
            update approvals set state = 'used', used_at = clock_timestamp() where id = approval.id and state = 'approved' returning id into used;
        end if;
    end if;
    if ticket is not null then
        insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, deadline)
        values (agent, credential, ticket, call ->> 'tool', args_hash, (call ->> 'deadline')::timestamptz)
        on conflict (agent_id, credential_id, key) do update set tool = excluded.tool, arguments_hash = excluded.arguments_hash,
            started_at = now(), deadline = excluded.deadline, finished_at = null, outcome = null;
    end if;
    perform audit_append(rows);
    return jsonb_build_object('verdict', 'go', 'approval_id', used);
end
$$;
-- +goose StatementEnd

-- Records what calls came to: audit rows, outcomes of writes with a key, the
-- end of approved calls, and, at most once a minute, when a key was last used.
-- With again, what an attempt before may have recorded is not recorded twice.
-- +goose StatementBegin
create function gate_settle(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
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
      and i.agent_id = f ->> 'agent_id' and i.credential_id = f ->> 'credential_id' and i.key = f ->> 'key';
    update idempotency i set finished_at = clock_timestamp(), outcome = f ->> 'outcome'
    from jsonb_array_elements(finished) f
    where i.agent_id = f ->> 'agent_id' and i.credential_id = f ->> 'credential_id' and i.key = f ->> 'key' and i.finished_at is null;
    update approvals p set state = 'approved', used_at = null
    from jsonb_array_elements(finished) f
    where (f ->> 'release')::boolean and p.id = f ->> 'approval_id' and p.state = 'used' and p.finished_at is null;
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

-- Choices offered to a person in a message, and what people said of an agent.
create table decisions (
    id          text primary key,
    agent_id    text not null references agents (id),
    question    text not null,
    options     jsonb not null,                    -- [{"key": "A", "content": "…"}]
    state       text not null default 'open' check (state in ('open', 'resolved')),
    chosen_key  text,
    created_at  timestamptz not null default now(),
    expires_at  timestamptz not null,
    resolved_at timestamptz
);
create index decisions_by_agent on decisions (agent_id, created_at desc);

create table feedback (
    id            bigint generated always as identity primary key,
    agent_id      text not null references agents (id), -- whom it is about
    by_agent      text not null,
    credential_id text not null,
    signal_type   text not null check (signal_type in ('positive', 'negative', 'correction')),
    detail        text not null,
    created_at    timestamptz not null default now()
);
create index feedback_by_agent on feedback (agent_id, created_at desc);

-- Subjects of access tokens and the agents they act as (OAuth).
create table oauth_subjects (
    issuer   text not null,
    subject  text not null,
    agent_id text not null references agents (id),
    scopes   text[] not null default '{}',         -- the most that a token of this subject may carry
    primary key (issuer, subject)
);

-- What the routers sign the state of a question to a client with, so that any
-- of them can take the answer. Two random UUIDs hold 244 random bits.
create table gate_secret (key bytea not null);
insert into gate_secret values (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
