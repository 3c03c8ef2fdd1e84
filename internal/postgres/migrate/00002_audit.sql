-- +goose Up
-- The audit trail: append-only, hash-chained per agent (one chain for all would
-- serialise every commit), in monthly partitions so that old months can be
-- dropped while the chain stays verifiable.

create table audit (
    agent_id      text not null,                   -- '' for refused logins
    seq           bigint not null,                 -- 1, 2, 3 … within the agent
    at            timestamptz not null,
    id            uuid not null,
    kind          text not null check (kind in ('decision', 'outcome')),
    request_id    text not null,
    door          text not null,                   -- http, stdio, loop, operator
    credential_id text not null default '',
    method        text not null,
    tool          text not null default '',
    category      text not null default '',
    decision      text not null check (decision in ('allowed', 'refused')),
    reason        text not null default '',        -- why refused, or the reason of a fault
    outcome       text not null default '' check (outcome in ('', 'ok', 'fault', 'invalid', 'replayed')),
    arguments     jsonb,                           -- redacted
    duration_us   bigint not null default 0,
    prev          bytea not null,                  -- hash of the row before
    hash          bytea not null,
    primary key (agent_id, seq, at)
) partition by range (at);
create table audit_default partition of audit default;
create index audit_by_time on audit (at desc);

-- The last row of every chain, locked while rows are appended to it.
create table audit_heads (
    agent_id text primary key,
    seq      bigint not null,
    hash     bytea not null
);

-- Where a chain goes on after its first months were dropped.
create table audit_checkpoints (
    agent_id  text not null,
    seq       bigint not null,
    hash      bytea not null,
    pruned_at timestamptz not null default now(),
    primary key (agent_id, seq)
);

-- What a row says, hashed; its own place in the chain included.
-- +goose StatementBegin
create function audit_content(a audit) returns bytea language sql immutable as $$
    select sha256(convert_to(jsonb_build_array(
        a.agent_id, a.seq, (extract(epoch from a.at) * 1000000)::bigint, a.id, a.kind, a.request_id, a.door, a.credential_id,
        a.method, a.tool, a.category, a.decision, a.reason, a.outcome, a.arguments, a.duration_us)::text, 'UTF8'))
$$;
-- +goose StatementEnd

-- The hash of a row: SHA-256 over the hash of the row before it and what it
-- says.
-- +goose StatementBegin
create function audit_digest(a audit) returns bytea language sql immutable as $$
    select sha256(a.prev || audit_content(a))
$$;
-- +goose StatementEnd

-- Appends rows, given as a JSON array of objects named like the columns, to the
-- chains of their agents. With again, rows that are there already are passed
-- over, so a group whose fate is unknown can be sent once more. Chains are
-- locked in one order: no deadlock. Only the chain itself is a loop; the rest is
-- done for all rows of an agent at once, because every call waits for it.
-- +goose StatementBegin
create function audit_append(rows jsonb, again boolean default false) returns void language plpgsql as $$
declare
    agent  text;
    chain  audit_heads;
    stamp  timestamptz;
    given  audit[];
    hashes bytea[];
    said   bytea;
begin
    for agent in select distinct value ->> 'agent_id' collate "C" from jsonb_array_elements(rows) order by 1 loop
        insert into audit_heads values (agent, 0, '') on conflict do nothing;
        select * into chain from audit_heads where agent_id = agent for update;
        stamp := clock_timestamp();
        select array_agg(jsonb_populate_record(null::audit, value || jsonb_build_object('seq', chain.seq + n, 'at', stamp)) order by n) into given
        from (
            select value, row_number() over (order by ordinality) as n
            from jsonb_array_elements(rows) with ordinality
            where value ->> 'agent_id' = agent and not (again and exists (
                select from audit a where a.agent_id = agent and a.seq > chain.seq - 10000 and a.id = (value ->> 'id')::uuid))
        ) r;
        continue when given is null;
        hashes := array[chain.hash];
        for said in select audit_content(g) from unnest(given) g order by g.seq loop
            hashes := hashes || sha256(hashes[cardinality(hashes)] || said);
        end loop;
        insert into audit
        select g.agent_id, g.seq, g.at, g.id, g.kind, g.request_id, g.door, g.credential_id, g.method, g.tool, g.category,
               g.decision, g.reason, g.outcome, g.arguments, g.duration_us, hashes[g.seq - chain.seq], hashes[g.seq - chain.seq + 1]
        from unnest(given) g;
        update audit_heads set seq = chain.seq + cardinality(given), hash = hashes[cardinality(hashes)] where agent_id = agent;
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function audit_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is append-only';
end
$$;
-- +goose StatementEnd
create trigger audit_append_only before update or delete on audit
    for each row execute function audit_append_only();
create trigger audit_never_truncated before truncate on audit
    for each statement execute function audit_append_only();

-- Every broken place of the chains: what is wrong and where. A chain begins at
-- its first row or behind its last checkpoint, has no gap, and ends at its head.
-- +goose StatementBegin
create function audit_verify(only_agent text default null)
returns table (agent_id text, seq bigint, problem text) language sql stable as $$
    with chain as (
        select a.agent_id, a.seq, a.prev, a.hash, audit_digest(a) as digest,
               lag(a.seq) over w as prev_seq, lag(a.hash) over w as prev_hash,
               row_number() over w as n
        from audit a
        where only_agent is null or a.agent_id = only_agent
        window w as (partition by a.agent_id order by a.seq)
    ), start as (
        select c.agent_id, max(c.seq) as seq, (array_agg(c.hash order by c.seq desc))[1] as hash
        from audit_checkpoints c group by c.agent_id
    ), tail as (
        select distinct on (c.agent_id) c.agent_id, c.seq, c.hash from chain c order by c.agent_id, c.seq desc
    )
    select c.agent_id, c.seq, 'the row was edited' from chain c where c.hash <> c.digest
    union all
    select c.agent_id, c.seq, 'rows before it are missing' from chain c left join start s on s.agent_id = c.agent_id
    where c.seq <> coalesce(c.prev_seq, s.seq, 0) + 1
    union all
    select c.agent_id, c.seq, 'it does not follow the row before it' from chain c left join start s on s.agent_id = c.agent_id
    where c.seq = coalesce(c.prev_seq, s.seq, 0) + 1 and c.prev <> coalesce(c.prev_hash, s.hash, '')
    union all
    select h.agent_id, h.seq, 'the newest rows are missing' from audit_heads h
        left join tail t on t.agent_id = h.agent_id left join start s on s.agent_id = h.agent_id
    where (only_agent is null or h.agent_id = only_agent)
      and (h.seq, h.hash) is distinct from (coalesce(t.seq, s.seq), coalesce(t.hash, s.hash))
    union all
    select t.agent_id, t.seq, 'the chain has no head' from tail t where not exists (select from audit_heads h where h.agent_id = t.agent_id)
    order by 1, 2
$$;
-- +goose StatementEnd

-- Makes the partition of a month, unless it is there or rows of that month
-- already lie in the default partition.
-- +goose StatementBegin
create function audit_partition(month date) returns void language plpgsql as $$
declare
    name text := format('audit_%s', to_char(month, 'YYYY_MM'));
    first timestamptz := date_trunc('month', month::timestamp) at time zone 'UTC';
    next timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') at time zone 'UTC';
begin
    if to_regclass(name) is null and not exists (select from audit_default where at >= first and at < next) then
        execute format('create table %I partition of audit for values from (%L) to (%L)', name, first, next);
    end if;
end
$$;
-- +goose StatementEnd

-- Drops the months that lie wholly before a day, and keeps the last row of each
-- chain as a checkpoint. Gives the partitions dropped.
-- +goose StatementBegin
create function audit_prune(before date) returns setof text language plpgsql as $$
declare
    part record;
begin
    for part in
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'audit'::regclass and c.relname ~ '^audit_\d{4}_\d{2}$'
          and to_date(substr(c.relname, 7), 'YYYY_MM') + interval '1 month' <= before
        order by c.relname
    loop
        execute format('insert into audit_checkpoints (agent_id, seq, hash)
            select distinct on (agent_id) agent_id, seq, hash from %I order by agent_id, seq desc on conflict do nothing', part.name);
        execute format('drop table %I', part.name);
        return next part.name;
    end loop;
end
$$;
-- +goose StatementEnd

select audit_partition((date_trunc('month', now()) + n * interval '1 month')::date) from generate_series(0, 3) n;
