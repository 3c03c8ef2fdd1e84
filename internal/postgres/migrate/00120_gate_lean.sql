-- +goose Up
-- Every call waits for gate_standing and gate_settle. What they cost is mostly
-- the beginning of statements, so they are made of few and small ones, whose
-- plans the session keeps, and of expressions, which plpgsql evaluates by itself.

-- Takes as many of the wanted tokens as there are from a bucket, and gives how
-- many there were before. A bucket that is not there is full. bucket_draw(jsonb)
-- and bucket_wait stay for instances that run older code until they are replaced.
-- +goose StatementBegin
create function bucket_draw(bucket text, burst double precision, per_minute double precision, wanted double precision)
returns double precision language plpgsql as $$
declare
    b buckets;
begin
    select * into b from buckets where key = bucket for update;
    if not found then
        perform bucket_lock(array[bucket]);
        select * into b from buckets where key = bucket;
    end if;
    b.tokens := least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60);
    update buckets set tokens = b.tokens - least(floor(b.tokens), wanted), at = clock_timestamp() where key = bucket;
    return b.tokens;
end
$$;
-- +goose StatementEnd

-- Locks buckets for the transaction, always in one order so that two callers
-- never wait for each other in a circle, and makes those that are not there.
-- +goose StatementBegin
create function bucket_lock(wanted text[]) returns void language plpgsql as $$
declare
    bucket text;
begin
    foreach bucket in array wanted loop
        perform from buckets where key = bucket for update;
        if not found then
            insert into buckets values (bucket, 'infinity', true, clock_timestamp()) on conflict (key) do nothing; -- full, however large
            perform from buckets where key = bucket for update;
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

-- How many tokens a bucket has.
-- +goose StatementBegin
create function bucket_level(bucket text, burst double precision, per_minute double precision)
returns double precision language plpgsql stable as $$
begin
    return coalesce((select least(greatest(burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * per_minute / 60)
        from buckets b where b.key = bucket), greatest(burst, 1));
end
$$;
-- +goose StatementEnd

-- Who calls and everything that the gate decides on.
create type gate_standing as (
    n                 integer,          -- the place of the question
    credential_id     text,
    scopes            text[],
    ceiling           text[],           -- of an access token's subject
    agent_id          text,
    state             text,
    allowed_tools     text[],
    denied_tools      text[],
    approval_required text[],
    scoped_tools      text[],
    rules             text,
    approver          text,
    approval_seconds  bigint,
    stop_since        timestamptz,      -- null: no stop is in force
    stop_everyone     boolean,
    stop_reason       text,
    granted           boolean,          -- the scoped tool, for now
    flood_level       double precision, -- tokens before the draw
    flood_rate        double precision, -- per minute
    class_level       double precision,
    class_rate        double precision,
    money             jsonb             -- as gate_money gives it
);

-- The keys' and subjects' agents and the buckets that questions draw on are
-- locked in one order before the first draw; one question keeps it by itself.
-- +goose StatementBegin
create function gate_buckets(asked jsonb) returns text[] language plpgsql stable as $$
begin
    return (with callers as (
        select k.agent_id, k.id, q ->> 'class' as class
        from jsonb_array_elements(asked) q join api_keys k on k.hash = decode(q ->> 'hash', 'hex')
        union all
        select coalesce(o.agent_id, q ->> 'agent'), q ->> 'credential', q ->> 'class'
        from jsonb_array_elements(asked) q left join oauth_subjects o on o.issuer = q ->> 'issuer' and o.subject = q ->> 'subject'
        where q ->> 'hash' = ''
    )
    select array(
        select 'class ' || agent_id || ' ' || class collate "C" from callers where class <> ''
        union
        select 'credential ' || agent_id || ' ' || id from callers where agent_id <> ''
        order by 1));
end
$$;
-- +goose StatementEnd

-- The standing of each caller in asked, a JSON array of
--   hash                of a key, in hex, or ''
--   agent               of a caller known otherwise, or ''
--   issuer, subject     of an access token, or ''
--   credential, scopes  of a caller that has no key
--   tool, class         the tool and its rate class, or ''
--   burst, rate         of the class, per minute, unless the agent has its own
--   flood_burst, flood_rate  of one credential
--   calls               how many ask this; 0 only looks, and takes no token
-- An attempt takes a token, whatever becomes of it. Nobody is no row: no such
-- key, revoked, expired, or an archived agent.
-- +goose StatementBegin
create function gate_standing(asked jsonb) returns setof gate_standing language plpgsql as $$
declare
    q      jsonb;
    calls  double precision;
    used   timestamptz;
    limits jsonb;
    class  text;
    burst  double precision;
    bucket text;
    s      gate_standing;
    none   gate_standing;
begin
    if jsonb_array_length(asked) > 1 then
        perform bucket_lock(gate_buckets(asked));
    end if;
    for i in 0 .. jsonb_array_length(asked) - 1 loop
        q := asked -> i;
        calls := q -> 'calls';
        s := none;
        s.n := i;
        if q ->> 'hash' <> '' then
            select k.id, k.agent_id, k.scopes, k.last_used_at into s.credential_id, s.agent_id, s.scopes, used
            from api_keys k
            where k.hash = decode(q ->> 'hash', 'hex') and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp());
            if calls > 0 and (used is null or used < clock_timestamp() - interval '1 minute') then
                -- Whoever holds the row says more of the key than this does.
                update api_keys set last_used_at = clock_timestamp()
                where id = (select k.id from api_keys k where k.id = s.credential_id for no key update skip locked);
            end if;
        else
            s.credential_id := q ->> 'credential';
            s.agent_id := q ->> 'agent';
            s.scopes := array(select jsonb_array_elements_text(q -> 'scopes'));
            if q ->> 'issuer' <> '' then
                select o.agent_id, o.scopes into s.agent_id, s.ceiling
                from oauth_subjects o where o.issuer = q ->> 'issuer' and o.subject = q ->> 'subject';
            end if;
        end if;

        select a.state, a.allowed_tools, a.denied_tools, a.approval_required_tools, a.scoped_tools, a.rules::text, a.approver,
               extract(epoch from a.approval_life)::bigint, a.limits
        into s.state, s.allowed_tools, s.denied_tools, s.approval_required, s.scoped_tools, s.rules, s.approver, s.approval_seconds, limits
        from agents a where a.id = s.agent_id and a.state <> 'archived';
        continue when not found;

        class := q ->> 'class';
        s.class_level := 1;
        s.class_rate := 0;
        if class <> '' then
            burst := coalesce(limits -> class -> 'burst', q -> 'burst');
            s.class_rate := coalesce(limits -> class -> 'per_minute', q -> 'rate');
            bucket := 'class ' || s.agent_id || ' ' || class;
            s.class_level := case when calls > 0 then bucket_draw(bucket, burst, s.class_rate, calls) else bucket_level(bucket, burst, s.class_rate) end;
        end if;
        burst := coalesce(limits -> 'credential' -> 'burst', q -> 'flood_burst');
        s.flood_rate := coalesce(limits -> 'credential' -> 'per_minute', q -> 'flood_rate');
        bucket := 'credential ' || s.agent_id || ' ' || s.credential_id;
        s.flood_level := case when calls > 0 then bucket_draw(bucket, burst, s.flood_rate, calls) else bucket_level(bucket, burst, s.flood_rate) end;

        s.granted := false;
        if cardinality(s.scoped_tools) > 0 then
            s.granted := exists (select from approvals g where g.agent_id = s.agent_id and g.kind = 'grant' and g.state = 'approved'
                and g.tool = q ->> 'tool' and g.covers_until > clock_timestamp());
        end if;
        s.money := gate_money(s.agent_id, q ->> 'tool');
        select p.agent_id is null, p.reason, p.stopped_at into s.stop_everyone, s.stop_reason, s.stop_since
        from stops p where p.resumed_at is null and coalesce(p.agent_id, '') in ('', s.agent_id)
        order by p.agent_id nulls first limit 1;
        return next s;
    end loop;
end
$$;
-- +goose StatementEnd

-- As before, in one look.
-- +goose StatementBegin
create or replace function gate_money(agent text, what text) returns jsonb language plpgsql stable as $$
declare
    moment   timestamptz := clock_timestamp();
    budgeted boolean;
    priced   boolean;
    price    bigint;
    place    record;
    stop     jsonb;
    covers   boolean := false;
begin
    if what = '' then
        return null;
    end if;
    select exists (select from budgets), exists (select from usage_prices where name like 'tool:%') into budgeted, priced;
    if not budgeted and not priced then
        return null; -- nearly always
    end if;
    if priced then
        price := round((usage_price('', 'tool:' || what, moment)).unit / 1000000.0)::bigint;
    end if;
    for place in
        select p.*, coalesce(s.settled, 0) as settled, coalesce(s.held, 0) as held, coalesce(s.unpriced, 0) as unpriced
        from budget_places(agent, '', what, moment) p
        left join budget_spent s on s.budget_id = (p.b).id and s.began = p.began and s.agent_id = p.agent_id and s.user_id = p.user_id and s.tool = p.tool
        order by budget_ends((p.b).period, (p.b).zone, moment) desc
    loop
        covers := true;
        if stop is null and (place.b).hard and (place.settled >= (place.b).limit_micros or (place.b).unpriced = 'stop' and place.unpriced > 0) then
            stop := budget_shown(place.b, place.began, place.agent_id, place.user_id, place.tool, place.settled, place.held, place.unpriced);
        end if;
    end loop;
    if price is null and not covers then
        return null;
    end if;
    return jsonb_build_object('price', price, 'covered', covers, 'stop', stop);
end
$$;
-- +goose StatementEnd

-- As before: appends rows, a JSON array of objects named like the columns, to
-- the chains of their agents, which are locked in one order; with again, rows
-- that are there already are passed over.
-- +goose StatementBegin
create or replace function audit_append(rows jsonb, again boolean default false) returns void language plpgsql as $$
declare
    agents text[] := '{}';
    agent  text;
    chain  audit_heads;
    stamp  timestamptz;
    g      audit;
    given  audit[];
begin
    for i in 0 .. jsonb_array_length(rows) - 1 loop
        agent := rows -> i ->> 'agent_id';
        if agent <> all (agents) then
            agents := agents || agent;
        end if;
    end loop;
    if cardinality(agents) > 1 then
        agents := array(select a from unnest(agents) a order by a collate "C");
    end if;
    foreach agent in array agents loop
        select * into chain from audit_heads where agent_id = agent for update;
        if not found then
            insert into audit_heads values (agent, 0, '') on conflict do nothing;
            select * into chain from audit_heads where agent_id = agent for update;
        end if;
        stamp := clock_timestamp();
        given := '{}';
        for i in 0 .. jsonb_array_length(rows) - 1 loop
            continue when rows -> i ->> 'agent_id' <> agent;
            g := jsonb_populate_record(null::audit, rows -> i);
            if again then
                continue when audit_has(agent, chain.seq, g.id);
            end if;
            g.seq := chain.seq + 1;
            g.at := stamp;
            g.prev := chain.hash;
            g.hash := sha256(g.prev || audit_content(g));
            chain.seq := g.seq;
            chain.hash := g.hash;
            given := given || g;
        end loop;
        continue when given = '{}';
        insert into audit select * from unnest(given);
        update audit_heads set seq = chain.seq, hash = chain.hash where agent_id = agent;
    end loop;
end
$$;
-- +goose StatementEnd

-- Whether a row is among the last of a chain: what is written again was written
-- a moment ago.
-- +goose StatementBegin
create function audit_has(agent text, last bigint, row_id uuid) returns boolean language plpgsql stable as $$
begin
    return exists (select from audit a where a.agent_id = agent and a.seq > last - 10000 and a.id = row_id);
end
$$;
-- +goose StatementEnd

-- As before; but gate_standing notes that a key was used.
-- +goose StatementBegin
create or replace function gate_settle(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
begin
    -- A group is written whole or not at all. To release a key or an approval a
    -- second time could take it from another call that has it by now.
    if again and audit_has(rows -> 0 ->> 'agent_id', (select seq from audit_heads where agent_id = rows -> 0 ->> 'agent_id'), (rows -> 0 ->> 'id')::uuid) then
        return;
    end if;
    if jsonb_array_length(finished) > 0 then
        perform gate_finish(finished);
    end if;
    perform audit_append(rows, again);
end
$$;
-- +goose StatementEnd

-- Ends what calls hold. What says that nothing was done may be tried again with
-- the same key and the same approval; what another request holds by now is not
-- touched.
-- +goose StatementBegin
create function gate_finish(finished jsonb) returns void language plpgsql as $$
begin
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
end
$$;
-- +goose StatementEnd

-- As before, for the usual case that nothing is held and nothing cost.
-- +goose StatementBegin
create or replace function gate_settle_paid(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
declare
    holds text[];
    costs jsonb;
begin
    if jsonb_array_length(finished) > 0 then
        select array_agg(f ->> 'hold') filter (where f ->> 'hold' <> ''), jsonb_agg(f -> 'usage') filter (where jsonb_typeof(f -> 'usage') = 'object')
        into holds, costs from jsonb_array_elements(finished) f;
        if holds is not null or costs is not null then
            perform budget_lock(holds, coalesce(costs, '[]'));
        end if;
        if holds is not null then
            perform budget_release(holds);
        end if;
        if costs is not null then
            perform usage_record(costs);
        end if;
    end if;
    perform gate_settle(rows, finished, again);
end
$$;
-- +goose StatementEnd
