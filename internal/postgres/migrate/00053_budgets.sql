-- +goose Up
-- Budgets that stop. What a call may cost at most is held back before it, in the
-- same transaction that looks whether there is so much left, and given back when
-- what it did cost is recorded. What is spent is counted by the trigger of usage,
-- so a retry counts once here too, and charging again corrects it.

create table budgets (
    id           text primary key,
    -- Whose: '' all of them together, '*' each one by itself, or one by name.
    agent_id     text not null default '',
    user_id      text not null default '',
    tool         text not null default '',
    period       text not null check (period in ('hour', 'day', 'week', 'month')),
    zone         text not null default 'UTC',
    limit_micros bigint not null check (limit_micros >= 0), -- 0: nothing at all
    warn_percent integer not null default 80 check (warn_percent between 1 and 100),
    hard         boolean not null default true,
    -- What a cost that nobody knows means for a hard budget: no further call, or
    -- only a warning. It is never taken for nothing.
    unpriced     text not null default 'stop' check (unpriced in ('stop', 'warn')),
    set_by       text not null default '',
    set_at       timestamptz not null default now(),
    unique (agent_id, user_id, tool, period)
);

create table budget_spent (
    budget_id text not null references budgets (id) on delete cascade,
    began     timestamptz not null,
    agent_id  text not null,
    user_id   text not null,
    tool      text not null,
    settled   bigint not null default 0,
    held      bigint not null default 0,
    unpriced  bigint not null default 0,            -- requests of unknown cost
    warned_at timestamptz,                          -- when it passed warn_percent
    primary key (budget_id, began, agent_id, user_id, tool)
) with (fillfactor = 50);

-- What is held back for calls under way. One that nobody settles, because its
-- process died, is let go at its end.
create table budget_holds (
    id        text not null,
    budget_id text not null,
    began     timestamptz not null,
    agent_id  text not null,
    user_id   text not null,
    tool      text not null,
    micros    bigint not null,
    until     timestamptz not null,
    primary key (id, budget_id),
    foreign key (budget_id, began, agent_id, user_id, tool) references budget_spent on delete cascade
);
create index budget_holds_by_end on budget_holds (budget_id, began, agent_id, user_id, tool, until);

create index usage_prices_of_tools on usage_prices (name) where name like 'tool:%';

-- +goose StatementBegin
create function budget_began(period text, zone text, moment timestamptz) returns timestamptz language sql stable as $$
    select date_trunc(period, moment, zone)
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create function budget_ends(period text, zone text, moment timestamptz) returns timestamptz language sql stable as $$
    select case period when 'hour' then date_trunc(period, moment, zone) + interval '1 hour'
        else (date_trunc(period, moment at time zone zone) + ('1 ' || period)::interval) at time zone zone end
$$;
-- +goose StatementEnd

-- The budgets that cover an agent, a user and a tool, and the row of each that
-- counts now.
-- +goose StatementBegin
create function budget_places(agent text, usr text, what text, moment timestamptz)
returns table (b budgets, began timestamptz, agent_id text, user_id text, tool text) language sql stable as $$
    select b, budget_began(b.period, b.zone, moment),
           case when b.agent_id = '' then '' else agent end, case when b.user_id = '' then '' else usr end, case when b.tool = '' then '' else what end
    from budgets b
    where b.agent_id in ('', '*', agent)
      and (b.user_id = '' or usr <> '' and b.user_id in ('*', usr))
      and (b.tool = '' or what <> '' and b.tool in ('*', what))
$$;
-- +goose StatementEnd

-- How a budget stands, as faults and reports show it.
-- +goose StatementBegin
create function budget_shown(b budgets, began timestamptz, agent text, usr text, what text, settled bigint, held bigint, unpriced bigint)
returns jsonb language sql stable as $$
    select jsonb_build_object('id', b.id, 'agent_id', agent, 'user_id', usr, 'tool', what, 'period', b.period, 'zone', b.zone,
        'limit', b.limit_micros, 'settled', settled, 'held', held, 'unpriced', unpriced, 'hard', b.hard,
        'resets_at', budget_ends(b.period, b.zone, began), 'resets_ms', ceil(extract(epoch from budget_ends(b.period, b.zone, began) - clock_timestamp()) * 1000)::bigint)
$$;
-- +goose StatementEnd

-- Holds back what a call may cost at most, in every budget that covers it:
--   {"id": …, "agent_id": …, "user_id": …, "tool": …, "micros": …, "seconds": how long at most}
-- or, in place of micros, "usage": a row to be priced, as usage_record takes it.
-- Answers {"ok": true, "micros": …, "warn": the fullest budget past its
-- warning, or null}, or {"ok": false, "budget": the one that has no room,
-- "wanted": …}; then nothing is held.
-- +goose StatementBegin
create function budget_reserve(ask jsonb) returns jsonb language plpgsql as $$
declare
    agent  text := ask ->> 'agent_id';
    usr    text := coalesce(ask ->> 'user_id', '');
    what   text := coalesce(ask ->> 'tool', '');
    wanted bigint := (ask ->> 'micros')::bigint;
    moment timestamptz := clock_timestamp();
    u      usage;
    place  record;
    spent  budget_spent;
    warn   jsonb;
    most   numeric := 0;
begin
    if not exists (select from budgets) then
        return '{"ok": true}';
    end if;
    if wanted is null and ask ? 'usage' then
        u := jsonb_populate_record(null::usage, '{"provider": "", "model": "", "tool": "", "requests": 1, "units": 0, "input": 0, "output": 0,
            "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0, "reasoning": 0}'::jsonb || jsonb_strip_nulls(ask -> 'usage'));
        wanted := usage_cost(usage_price(u.provider, coalesce(nullif(u.model, ''), 'tool:' || u.tool), moment), u);
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended('budgets', 51)); -- see budget_count
    -- Rows are made and locked in the order of their key, here and wherever they
    -- are changed, so that nobody waits in a circle.
    insert into budget_spent (budget_id, began, agent_id, user_id, tool)
    select (p.b).id, p.began, p.agent_id, p.user_id, p.tool from budget_places(agent, usr, what, moment) p order by 1, 2, 3, 4, 5
    on conflict do nothing;
    for place in select * from budget_places(agent, usr, what, moment) p order by (p.b).id, p.began, p.agent_id, p.user_id, p.tool loop
        select * into spent from budget_spent s
        where s.budget_id = (place.b).id and s.began = place.began and s.agent_id = place.agent_id and s.user_id = place.user_id and s.tool = place.tool for update;
        with over as (
            delete from budget_holds h
            where h.budget_id = spent.budget_id and h.began = spent.began and h.agent_id = spent.agent_id and h.user_id = spent.user_id and h.tool = spent.tool
              and h.until < moment
            returning h.micros
        )
        select spent.held - coalesce(sum(micros), 0) into spent.held from over;
        if (place.b).hard and (spent.settled >= (place.b).limit_micros or spent.settled + spent.held + coalesce(wanted, 0) > (place.b).limit_micros
                or (place.b).unpriced = 'stop' and (spent.unpriced > 0 or wanted is null)) then
            -- Undoes what was held before it, and the deletions; a refusal changes nothing.
            raise exception using errcode = 'PG051', message = jsonb_build_object('ok', false, 'wanted', wanted, 'budget',
                budget_shown(place.b, spent.began, spent.agent_id, spent.user_id, spent.tool, spent.settled, spent.held, spent.unpriced))::text;
        end if;
        update budget_spent s set held = spent.held + coalesce(wanted, 0)
        where s.budget_id = spent.budget_id and s.began = spent.began and s.agent_id = spent.agent_id and s.user_id = spent.user_id and s.tool = spent.tool;
        insert into budget_holds values (ask ->> 'id', spent.budget_id, spent.began, spent.agent_id, spent.user_id, spent.tool, coalesce(wanted, 0),
            moment + coalesce((ask ->> 'seconds')::float8, 600) * interval '1 second');
        if spent.settled + spent.held + coalesce(wanted, 0) >= (place.b).limit_micros * (place.b).warn_percent / 100.0 or spent.unpriced > 0 or wanted is null then
            if (spent.settled + spent.held + coalesce(wanted, 0)) / greatest((place.b).limit_micros, 1)::numeric >= most then
                most := (spent.settled + spent.held + coalesce(wanted, 0)) / greatest((place.b).limit_micros, 1)::numeric;
                warn := budget_shown(place.b, spent.began, spent.agent_id, spent.user_id, spent.tool, spent.settled, spent.held + coalesce(wanted, 0), spent.unpriced);
            end if;
        end if;
    end loop;
    return jsonb_build_object('ok', true, 'micros', wanted, 'warn', warn);
exception when sqlstate 'PG051' then
    return sqlerrm::jsonb;
end
$$;
-- +goose StatementEnd

-- Lets go what was held for calls.
-- +goose StatementBegin
create function budget_release(ids text[]) returns void language plpgsql as $$
begin
    if not exists (select from budget_holds h where h.id = any (ids)) then
        return;
    end if;
    perform from budget_spent s
    where (s.budget_id, s.began, s.agent_id, s.user_id, s.tool) in (
        select h.budget_id, h.began, h.agent_id, h.user_id, h.tool from budget_holds h where h.id = any (ids))
    order by s.budget_id, s.began, s.agent_id, s.user_id, s.tool for update;
    with gone as (
        delete from budget_holds h where h.id = any (ids) returning *
    ), sums as (
        select budget_id, began, agent_id, user_id, tool, sum(micros) as micros from gone group by 1, 2, 3, 4, 5
    )
    update budget_spent s set held = s.held - g.micros
    from sums g
    where s.budget_id = g.budget_id and s.began = g.began and s.agent_id = g.agent_id and s.user_id = g.user_id and s.tool = g.tool;
end
$$;
-- +goose StatementEnd

-- Records what calls came to and lets go what was held for them, at once.
-- +goose StatementBegin
create function budget_settle(ids text[], rows jsonb) returns table (added bigint, grown bigint, late bigint) language plpgsql as $$
begin
    perform budget_release(ids);
    return query select r.added, r.grown, r.late from usage_record(rows) r;
end
$$;
-- +goose StatementEnd

-- Counts what a budget's current period spent already, anew. Whoever records
-- usage holds the lock with others, so that nothing is recorded between this
-- count and the first row that the trigger counts.
-- +goose StatementBegin
create function budget_count(budget text) returns void language plpgsql as $$
declare
    b     budgets;
    since timestamptz;
begin
    perform pg_advisory_xact_lock(hashtextextended('budgets', 51));
    select * into strict b from budgets where id = budget;
    since := budget_began(b.period, b.zone, clock_timestamp());
    delete from budget_spent where budget_id = budget;
    insert into budget_spent (budget_id, began, agent_id, user_id, tool, settled, unpriced)
    select b.id, since, case when b.agent_id = '' then '' else u.agent_id end, case when b.user_id = '' then '' else u.user_id end,
           case when b.tool = '' then '' else u.tool end, coalesce(sum(u.cost_micros), 0), count(*) filter (where u.cost_micros is null)
    from usage u
    where u.at >= since
      and (b.agent_id in ('', '*') or b.agent_id = u.agent_id)
      and (b.user_id = '' or u.user_id <> '' and b.user_id in ('*', u.user_id))
      and (b.tool = '' or u.tool <> '' and b.tool in ('*', u.tool))
    group by 3, 4, 5;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function usage_note() returns trigger language plpgsql as $$
begin
    -- usage_prune takes old rows away and leaves their sums.
    if current_setting('pawgate.usage_quiet', true) = 'on' then
        return null;
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended('budgets', 51));
    if tg_op in ('UPDATE', 'DELETE') then
        insert into usage_changes (at, agent_id, user_id, request_type, provider, model, tool, requests, unpriced, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, cost_micros)
        select at, agent_id, user_id, request_type, provider, model, tool, -requests, -(cost_micros is null)::int, -units, -input, -output,
            -cache_read, -cache_write_5m, -cache_write_1h, -reasoning, -coalesce(cost_micros, 0)
        from before;
        if exists (select from budgets) then
            perform budget_add((select coalesce(jsonb_agg(jsonb_build_object('at', at, 'agent', agent_id, 'usr', user_id, 'tool', tool,
                'micros', -coalesce(cost_micros, 0), 'unpriced', -(cost_micros is null)::int)), '[]') from before));
        end if;
    end if;
    if tg_op in ('UPDATE', 'INSERT') then
        insert into usage_changes (at, agent_id, user_id, request_type, provider, model, tool, requests, unpriced, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, cost_micros)
        select at, agent_id, user_id, request_type, provider, model, tool, requests, (cost_micros is null)::int, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, coalesce(cost_micros, 0)
        from after;
        if exists (select from budgets) then
            perform budget_add((select coalesce(jsonb_agg(jsonb_build_object('at', at, 'agent', agent_id, 'usr', user_id, 'tool', tool,
                'micros', coalesce(cost_micros, 0), 'unpriced', (cost_micros is null)::int)), '[]') from after));
        end if;
    end if;
    return null;
end
$$;
-- +goose StatementEnd

-- Adds to what budgets spent. Only the current period counts: what is over
-- stops nobody any more.
-- +goose StatementBegin
create function budget_add(list jsonb) returns void language sql volatile as $$
    insert into budget_spent as s (budget_id, began, agent_id, user_id, tool, settled, unpriced)
    select (p.b).id, p.began, p.agent_id, p.user_id, p.tool, sum(u.micros), sum(u.unpriced)
    from jsonb_to_recordset(list) u (at timestamptz, agent text, usr text, tool text, micros bigint, unpriced bigint)
    cross join lateral budget_places(u.agent, u.usr, u.tool, u.at) p
    where p.began = budget_began((p.b).period, (p.b).zone, clock_timestamp())
    group by 1, 2, 3, 4, 5
    order by 1, 2, 3, 4, 5
    on conflict (budget_id, began, agent_id, user_id, tool) do update
        set settled = s.settled + excluded.settled, unpriced = s.unpriced + excluded.unpriced
$$;
-- +goose StatementEnd

-- What the gate asks of money for one agent and tool: null for the usual case,
-- that there is no budget and the tool has no price; else
--   {"price": of one call in micro-dollars, or null, "covered": whether a budget covers it, "stop": the used-up hard budget, or null}
-- +goose StatementBegin
create function gate_money(agent text, what text) returns jsonb language plpgsql stable as $$
declare
    moment timestamptz := clock_timestamp();
    price  bigint;
    place  record;
    stop   jsonb;
    covers boolean := false;
begin
    if what = '' or not exists (select from budgets) and not exists (select from usage_prices where name like 'tool:%') then
        return null; -- nearly always
    end if;
    if exists (select from usage_prices where name like 'tool:%') then
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

-- gate_reserve for a call that costs something: call has a member "budget", as
-- budget_reserve takes it. A known idempotency key comes first, as everywhere.
-- +goose StatementBegin
create function gate_reserve_paid(call jsonb, rows jsonb) returns jsonb language plpgsql as $$
declare
    hold    jsonb;
    verdict jsonb;
begin
    if call -> 'budget' is null or jsonb_typeof(call -> 'budget') = 'null' then
        return gate_reserve(call, rows);
    end if;
    if exists (select from budget_holds h where h.id = call #>> '{budget,id}') then
        hold := '{"ok": true}'; -- this very call holds it; the answer was lost on the way
    else
        hold := budget_reserve(call -> 'budget');
    end if;
    if not (hold ->> 'ok')::boolean then
        verdict := gate_reserve(call || '{"limited": true}', rows);
        return case when verdict ->> 'verdict' = 'limited' then verdict || jsonb_build_object('refusal', hold) else verdict end;
    end if;
    verdict := gate_reserve(call, rows);
    if verdict ->> 'verdict' <> 'go' then
        perform budget_release(array[call #>> '{budget,id}']);
    end if;
    return verdict;
end
$$;
-- +goose StatementEnd

-- gate_settle, after the money of what ended is settled: an element of finished
-- may have "hold", what was held for it, and "usage", a row to record. Budgets
-- before chains, as gate_reserve_paid locks them.
-- +goose StatementBegin
create function gate_settle_paid(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
declare
    holds text[];
    costs jsonb;
begin
    select array_agg(f ->> 'hold') filter (where f ->> 'hold' <> ''), jsonb_agg(f -> 'usage') filter (where jsonb_typeof(f -> 'usage') = 'object')
    into holds, costs from jsonb_array_elements(finished) f;
    if holds is not null then
        perform budget_release(holds);
    end if;
    if costs is not null then
        perform usage_record(costs);
    end if;
    perform gate_settle(rows, finished, again);
end
$$;
-- +goose StatementEnd
