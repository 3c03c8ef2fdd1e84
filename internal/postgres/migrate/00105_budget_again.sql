-- +goose Up
-- Budgets, four gaps closed: what an agent made spends its maker's money too;
-- what a call holds outlasts a change of its budget and the end of a period;
-- a completion is held for at its dearest; and whoever needs several rows of
-- budget_spent makes the missing ones first and locks them all in one order.

create index agents_made_by on agents (created_by) where created_by is not null;

-- An agent, and those that made it, up to one that an operator made.
-- +goose StatementBegin
create function agents_makers(agent text) returns setof text language sql stable as $$
    with recursive makers (id) as (
        select agent
        union
        select a.created_by from agents a join makers m on a.id = m.id where a.created_by is not null
    )
    select id from makers
$$;
-- +goose StatementEnd

-- An agent, and those that it made, directly or through others.
-- +goose StatementBegin
create function agents_made(top text) returns setof text language sql stable as $$
    with recursive made (id) as (
        select top
        union
        select a.id from agents a join made m on a.created_by = m.id
    )
    select id from made
$$;
-- +goose StatementEnd

-- As before; and a budget of an agent covers the agents that it made, or an
-- agent would have as much money as it makes agents.
-- +goose StatementBegin
create or replace function budget_places(agent text, usr text, what text, moment timestamptz)
returns table (b budgets, began timestamptz, agent_id text, user_id text, tool text) language sql stable as $$
    with makers as materialized (
        select id from agents_makers(agent) m (id)
    )
    select b, budget_began(b.period, b.zone, moment), payer.id,
           case when b.user_id = '' then '' else usr end, case when b.tool = '' then '' else what end
    from budgets b
    cross join lateral (
        select '' as id where b.agent_id = ''
        union all
        select m.id from makers m where b.agent_id in ('*', m.id)
    ) payer
    where (b.user_id = '' or usr <> '' and b.user_id in ('*', usr))
      and (b.tool = '' or what <> '' and b.tool in ('*', what))
$$;
-- +goose StatementEnd

-- As before; what calls hold that began in another period, or before the zone
-- was changed, counts too, because it will be settled in this one. And the prompt
-- is held for at the price of keeping it in the cache, where that is dearer:
-- providers decide how much of it they keep.
-- +goose StatementBegin
create or replace function budget_reserve(ask jsonb) returns jsonb language plpgsql as $$
declare
    agent  text := ask ->> 'agent_id';
    usr    text := coalesce(ask ->> 'user_id', '');
    what   text := coalesce(ask ->> 'tool', '');
    wanted bigint := (ask ->> 'micros')::bigint;
    moment timestamptz := clock_timestamp();
    u      usage;
    price  usage_prices;
    place  record;
    spent  budget_spent;
    others bigint;
    warn   jsonb;
    most   numeric := 0;
begin
    if not exists (select from budgets) then
        return '{"ok": true}';
    end if;
    if wanted is null and ask ? 'usage' then
        u := jsonb_populate_record(null::usage, '{"provider": "", "model": "", "tool": "", "requests": 1, "units": 0, "input": 0, "output": 0,
            "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0, "reasoning": 0}'::jsonb || jsonb_strip_nulls(ask -> 'usage'));
        price := usage_price(u.provider, coalesce(nullif(u.model, ''), 'tool:' || u.tool), moment);
        wanted := usage_cost(price, u);
        u.cache_write_5m := u.cache_write_5m + u.input;
        u.input := 0;
        wanted := greatest(wanted, usage_cost(price, u)); -- greatest passes over what is null
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended('budgets', 51)); -- see budget_count
    -- See budget_lock for the order.
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
        select coalesce(sum(h.micros), 0) into others from budget_holds h
        where h.budget_id = spent.budget_id and h.began <> spent.began and h.agent_id = spent.agent_id and h.user_id = spent.user_id and h.tool = spent.tool
          and h.until >= moment;
        if (place.b).hard and (spent.settled >= (place.b).limit_micros or spent.settled + spent.held + others + coalesce(wanted, 0) > (place.b).limit_micros
                or (place.b).unpriced = 'stop' and (spent.unpriced > 0 or wanted is null)) then
            -- Undoes what was held before it, and the deletions; a refusal changes nothing.
            raise exception using errcode = 'PG051', message = jsonb_build_object('ok', false, 'wanted', wanted, 'budget',
                budget_shown(place.b, spent.began, spent.agent_id, spent.user_id, spent.tool, spent.settled, spent.held + others, spent.unpriced))::text;
        end if;
        update budget_spent s set held = spent.held + coalesce(wanted, 0)
        where s.budget_id = spent.budget_id and s.began = spent.began and s.agent_id = spent.agent_id and s.user_id = spent.user_id and s.tool = spent.tool;
        insert into budget_holds values (ask ->> 'id', spent.budget_id, spent.began, spent.agent_id, spent.user_id, spent.tool, coalesce(wanted, 0),
            moment + coalesce((ask ->> 'seconds')::float8, 600) * interval '1 second');
        spent.held := spent.held + others + coalesce(wanted, 0);
        if spent.settled + spent.held >= (place.b).limit_micros * (place.b).warn_percent / 100.0 or spent.unpriced > 0 or wanted is null then
            if (spent.settled + spent.held) / greatest((place.b).limit_micros, 1)::numeric >= most then
                most := (spent.settled + spent.held) / greatest((place.b).limit_micros, 1)::numeric;
                warn := budget_shown(place.b, spent.began, spent.agent_id, spent.user_id, spent.tool, spent.settled, spent.held, spent.unpriced);
            end if;
        end if;
    end loop;
    return jsonb_build_object('ok', true, 'micros', wanted, 'warn', warn);
exception when sqlstate 'PG051' then
    return sqlerrm::jsonb;
end
$$;
-- +goose StatementEnd

-- One call holds money once of each payer: of its agent and of that one's maker
-- the same budget may ask.
alter table budget_holds drop constraint budget_holds_pkey;
alter table budget_holds add primary key (id, budget_id, agent_id);

-- Makes and locks every row that the end of calls will change: those that they
-- hold money in, and those that their usage will be added to. In two steps,
-- each in the order of the key, here and wherever several are changed: first
-- the missing ones are made, while no other is locked, then all are locked. So
-- nobody waits in a circle.
-- +goose StatementBegin
create function budget_lock(ids text[], rows jsonb) returns void language plpgsql as $$
begin
    if not exists (select from budgets) then
        return;
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended('budgets', 51)); -- see budget_count
    insert into budget_spent (budget_id, began, agent_id, user_id, tool)
    select distinct (p.b).id, p.began, p.agent_id, p.user_id, p.tool
    from jsonb_array_elements(rows) r
    cross join lateral budget_places(r ->> 'agent_id', coalesce(r ->> 'user_id', ''), coalesce(r ->> 'tool', ''), clock_timestamp()) p
    order by 1, 2, 3, 4, 5
    on conflict do nothing;
    perform from budget_spent s
    where (s.budget_id, s.began, s.agent_id, s.user_id, s.tool) in (
        select h.budget_id, h.began, h.agent_id, h.user_id, h.tool from budget_holds h where h.id = any (ids)
        union all
        select (p.b).id, p.began, p.agent_id, p.user_id, p.tool
        from jsonb_array_elements(rows) r
        cross join lateral budget_places(r ->> 'agent_id', coalesce(r ->> 'user_id', ''), coalesce(r ->> 'tool', ''), clock_timestamp()) p)
    order by s.budget_id, s.began, s.agent_id, s.user_id, s.tool for update;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function budget_release(ids text[]) returns void language plpgsql as $$
begin
    if not exists (select from budget_holds h where h.id = any (ids)) then
        return;
    end if;
    perform budget_lock(ids, '[]');
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

-- +goose StatementBegin
create or replace function budget_settle(ids text[], rows jsonb) returns table (added bigint, grown bigint, late bigint) language plpgsql as $$
begin
    perform budget_lock(ids, rows);
    perform budget_release(ids);
    return query select r.added, r.grown, r.late from usage_record(rows) r;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function gate_settle_paid(rows jsonb, finished jsonb, again boolean default false) returns void language plpgsql as $$
declare
    holds text[];
    costs jsonb;
begin
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
    perform gate_settle(rows, finished, again);
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function budget_add(list jsonb) returns void language plpgsql as $$
begin
    insert into budget_spent (budget_id, began, agent_id, user_id, tool) -- first, as in budget_lock
    select distinct (p.b).id, p.began, p.agent_id, p.user_id, p.tool
    from jsonb_to_recordset(list) u (at timestamptz, agent text, usr text, tool text)
    cross join lateral budget_places(u.agent, u.usr, u.tool, u.at) p
    where p.began = budget_began((p.b).period, (p.b).zone, clock_timestamp())
    order by 1, 2, 3, 4, 5
    on conflict do nothing;
    insert into budget_spent as s (budget_id, began, agent_id, user_id, tool, settled, unpriced)
    select (p.b).id, p.began, p.agent_id, p.user_id, p.tool, sum(u.micros), sum(u.unpriced)
    from jsonb_to_recordset(list) u (at timestamptz, agent text, usr text, tool text, micros bigint, unpriced bigint)
    cross join lateral budget_places(u.agent, u.usr, u.tool, u.at) p
    where p.began = budget_began((p.b).period, (p.b).zone, clock_timestamp())
    group by 1, 2, 3, 4, 5
    order by 1, 2, 3, 4, 5
    on conflict (budget_id, began, agent_id, user_id, tool) do update
        set settled = s.settled + excluded.settled, unpriced = s.unpriced + excluded.unpriced;
end
$$;
-- +goose StatementEnd

-- As before; what calls hold stays held.
-- +goose StatementBegin
create or replace function budget_count(budget text) returns void language plpgsql as $$
declare
    limits budgets;
    since  timestamptz;
    ends   timestamptz;
begin
    perform pg_advisory_xact_lock(hashtextextended('budgets', 51));
    select * into strict limits from budgets where id = budget;
    since := budget_began(limits.period, limits.zone, clock_timestamp());
    ends := budget_ends(limits.period, limits.zone, clock_timestamp());
    delete from budget_spent s where s.budget_id = budget and not exists (
        select from budget_holds h
        where (h.budget_id, h.began, h.agent_id, h.user_id, h.tool) = (s.budget_id, s.began, s.agent_id, s.user_id, s.tool) and h.until >= clock_timestamp());
    update budget_spent s set settled = 0, unpriced = 0 where s.budget_id = budget;
    insert into budget_spent as s (budget_id, began, agent_id, user_id, tool, settled, unpriced)
    select budget, since, p.agent_id, p.user_id, p.tool, sum(u.micros), sum(u.unpriced)
    from (
        select u.agent_id, u.user_id, u.tool, coalesce(sum(u.cost_micros), 0) as micros, count(*) filter (where u.cost_micros is null) as unpriced
        from usage u
        where u.at >= since and u.at < ends and (limits.agent_id in ('', '*') or u.agent_id in (select agents_made(limits.agent_id)))
        group by 1, 2, 3
    ) u
    cross join lateral budget_places(u.agent_id, u.user_id, u.tool, since) p
    where (p.b).id = budget
    group by 3, 4, 5
    on conflict (budget_id, began, agent_id, user_id, tool) do update set settled = excluded.settled, unpriced = excluded.unpriced;
end
$$;
-- +goose StatementEnd

-- Whoever changes a budget takes this first, before any row is locked: whoever
-- reserves or records comes before it or after it.
-- +goose StatementBegin
create function budget_alone() returns void language sql volatile as $$
    select pg_advisory_xact_lock(hashtextextended('budgets', 51))
$$;
-- +goose StatementEnd

-- Takes a budget away, and says whether it was there.
-- +goose StatementBegin
create function budget_remove(budget text) returns boolean language plpgsql as $$
begin
    perform budget_alone();
    delete from budgets where id = budget;
    return found;
end
$$;
-- +goose StatementEnd

-- What was counted for agents that an agent made is its maker's as well.
select budget_count(id) from budgets where agent_id <> '';
