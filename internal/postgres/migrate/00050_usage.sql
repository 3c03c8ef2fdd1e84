-- +goose Up
-- What everything costs: one row for each answer of a model and for each paid
-- use of a tool, in micro-dollars, and the prices that they were charged by.
-- Sums are kept beside the rows, so that a report of a year reads thousands of
-- rows, not millions.

-- Prices, dated. A price holds from its date until the next one of the same
-- name. Money is in pico-dollars for one token or unit: one dollar for a million
-- tokens is 1,000,000, so list prices are whole numbers. What has no price is
-- null, and what was charged by it is unknown: never free.
create table usage_prices (
    id             bigint generated always as identity primary key,
    version        text not null,                   -- where it came from, such as 'litellm 2026-12-01'
    provider       text not null default '',        -- '': whoever serves it
    name           text not null check (name <> ''), -- a model, or 'tool:NAME'; 'NAME*' is every name that begins so
    valid_from     timestamptz not null default '-infinity',
    input          bigint check (input >= 0),
    output         bigint check (output >= 0),
    cache_read     bigint check (cache_read >= 0),
    cache_write_5m bigint check (cache_write_5m >= 0),
    cache_write_1h bigint check (cache_write_1h >= 0),
    reasoning      bigint check (reasoning >= 0),   -- null: as output
    unit           bigint check (unit >= 0),        -- one request of a model, or one credit or message of a tool
    -- Dearer above a prompt of so many tokens: [{"above": 200000, "input": …}]. The whole
    -- request is charged so (a cliff), or with "excess": true only the input above.
    tiers          jsonb not null default '[]' check (jsonb_typeof(tiers) = 'array'),
    created_at     timestamptz not null default now(),
    unique (name, provider, valid_from)
);

create table usage (
    id              bigint generated always as identity primary key,
    at              timestamptz not null,
    agent_id        text not null check (agent_id <> ''), -- no reference: what was spent outlives an agent
    user_id         text not null default '',
    session_id      text not null default '',
    task_id         text not null default '',
    request_type    text not null default 'chat' check (request_type in ('chat', 'dispatch', 'cron', 'evolution', 'tool')),
    provider        text not null default '',
    model           text not null default '',       -- the one that served it
    asked_model     text not null default '',       -- the one that was asked for, where that is another
    tool            text not null default '',       -- of a tool's own price
    requests        bigint not null default 1 check (requests >= 0),
    units           bigint not null default 0 check (units between 0 and 1000000000000), -- credits, messages
    -- Tokens. input is what was neither read from a cache nor written to one;
    -- reasoning is the part of output that nobody saw.
    input           bigint not null default 0 check (input between 0 and 1000000000000),
    output          bigint not null default 0 check (output between 0 and 1000000000000),
    cache_read      bigint not null default 0 check (cache_read between 0 and 1000000000000),
    cache_write_5m  bigint not null default 0 check (cache_write_5m between 0 and 1000000000000),
    cache_write_1h  bigint not null default 0 check (cache_write_1h between 0 and 1000000000000),
    reasoning       bigint not null default 0 check (reasoning between 0 and output),
    reported_micros bigint check (reported_micros between 0 and 1000000000000), -- what the source said it cost
    cost_micros     bigint check (cost_micros >= 0), -- null: unknown
    price_version   text not null default '',       -- 'reported', or that of the price
    source          text not null check (source <> ''), -- loop, gate, claude_code, api, …
    source_id       text not null check (source_id <> ''), -- the same again is the same usage
    created_at      timestamptz not null default now(),
    unique (source, source_id)
);
create index usage_by_time on usage (at desc, id desc);
create index usage_of_agent on usage (agent_id, at desc, id desc);
create index usage_of_user on usage (user_id, at) where user_id <> '';
create index usage_by_session on usage (session_id, at desc) where session_id <> '';
create index usage_unpriced on usage (model, provider) where cost_micros is null;

-- Sums: by agent and model, by agent and user, by agent alone. level is what a row
-- sums up: 0 a quarter of an hour (every time zone's hours and days begin at
-- one), 1 an hour, 2 a day, 3 a month, all of UTC. By model there are hours, days
-- and months, by user days and months: below that there are nearly as many sums
-- as rows, so rows are read.
create table usage_by_model (
    level smallint not null, at timestamptz not null,
    agent_id text not null, request_type text not null, provider text not null, model text not null, tool text not null,
    requests bigint not null, unpriced bigint not null, units bigint not null, input bigint not null, output bigint not null,
    cache_read bigint not null, cache_write_5m bigint not null, cache_write_1h bigint not null, reasoning bigint not null, cost_micros bigint not null,
    primary key (level, at, agent_id, request_type, provider, model, tool)
);
create table usage_by_user (
    level smallint not null, at timestamptz not null,
    agent_id text not null, user_id text not null,
    requests bigint not null, unpriced bigint not null, units bigint not null, input bigint not null, output bigint not null,
    cache_read bigint not null, cache_write_5m bigint not null, cache_write_1h bigint not null, reasoning bigint not null, cost_micros bigint not null,
    primary key (level, at, agent_id, user_id)
);
-- A report by day of a zone reads hours, or quarters where the zone's hours begin
-- between those of UTC, and of those by model there are too many. Everyone's sums
-- are an agent '' of their own, and one agent's are found without reading the
-- others'.
create table usage_by_agent (
    level smallint not null, at timestamptz not null, agent_id text not null,
    requests bigint not null, unpriced bigint not null, units bigint not null, input bigint not null, output bigint not null,
    cache_read bigint not null, cache_write_5m bigint not null, cache_write_1h bigint not null, reasoning bigint not null, cost_micros bigint not null,
    primary key (level, at, agent_id)
);
create index usage_by_agent_one on usage_by_agent (agent_id, level, at);

-- What is not in the sums yet: the rows added, and with the sign turned those
-- taken away. Writers only append here, so none waits for another; reports add
-- it to the sums; usage_fold moves it there.
create table usage_changes (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    agent_id text not null, user_id text not null, request_type text not null, provider text not null, model text not null, tool text not null,
    requests bigint not null, unpriced bigint not null, units bigint not null, input bigint not null, output bigint not null,
    cache_read bigint not null, cache_write_5m bigint not null, cache_write_1h bigint not null, reasoning bigint not null, cost_micros bigint not null
);

-- +goose StatementBegin
create function usage_note() returns trigger language plpgsql as $$
begin
    -- usage_prune takes old rows away and leaves their sums.
    if current_setting('pawgate.usage_quiet', true) = 'on' then
        return null;
    end if;
    if tg_op in ('UPDATE', 'DELETE') then
        insert into usage_changes (at, agent_id, user_id, request_type, provider, model, tool, requests, unpriced, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, cost_micros)
        select at, agent_id, user_id, request_type, provider, model, tool, -requests, -(cost_micros is null)::int, -units, -input, -output,
            -cache_read, -cache_write_5m, -cache_write_1h, -reasoning, -coalesce(cost_micros, 0)
        from before;
    end if;
    if tg_op in ('UPDATE', 'INSERT') then
        insert into usage_changes (at, agent_id, user_id, request_type, provider, model, tool, requests, unpriced, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, cost_micros)
        select at, agent_id, user_id, request_type, provider, model, tool, requests, (cost_micros is null)::int, units, input, output,
            cache_read, cache_write_5m, cache_write_1h, reasoning, coalesce(cost_micros, 0)
        from after;
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger usage_added after insert on usage referencing new table as after for each statement execute function usage_note();
create trigger usage_changed after update on usage referencing old table as before new table as after for each statement execute function usage_note();
create trigger usage_removed after delete on usage referencing old table as before for each statement execute function usage_note();

-- The beginning of the quarter, hour, day or month of UTC that a time lies in.
-- +goose StatementBegin
create function usage_period(level integer, at timestamptz) returns timestamptz language sql immutable as $$
    select case level
        when 0 then date_bin('15 minutes', at, timestamptz '2000-01-01 00:00:00+00')
        when 1 then date_bin('1 hour', at, timestamptz '2000-01-01 00:00:00+00')
        when 2 then date_bin('1 day', at, timestamptz '2000-01-01 00:00:00+00')
        else date_trunc('month', at at time zone 'UTC') at time zone 'UTC' end
$$;
-- +goose StatementEnd

-- Moves up to so many changes into the sums, and says how many it moved. Where
-- another is at it already, it does nothing.
-- +goose StatementBegin
create function usage_fold(most integer default 100000) returns bigint language plpgsql as $$
declare
    moved bigint;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('usage_fold', 50)) then
        return 0;
    end if;
    with gone as (
        delete from usage_changes where id in (select id from usage_changes order by id limit most) returning *
    ), models as (
        insert into usage_by_model as s
        select l, usage_period(l, at), agent_id, request_type, provider, model, tool, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from gone, generate_series(1, 3) l group by 1, 2, 3, 4, 5, 6, 7
        on conflict (level, at, agent_id, request_type, provider, model, tool) do update set
            requests = s.requests + excluded.requests, unpriced = s.unpriced + excluded.unpriced, units = s.units + excluded.units,
            input = s.input + excluded.input, output = s.output + excluded.output, cache_read = s.cache_read + excluded.cache_read,
            cache_write_5m = s.cache_write_5m + excluded.cache_write_5m, cache_write_1h = s.cache_write_1h + excluded.cache_write_1h,
            reasoning = s.reasoning + excluded.reasoning, cost_micros = s.cost_micros + excluded.cost_micros
    ), users as (
        insert into usage_by_user as s
        select l, usage_period(l, at), agent_id, user_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from gone, generate_series(2, 3) l group by 1, 2, 3, 4
        on conflict (level, at, agent_id, user_id) do update set
            requests = s.requests + excluded.requests, unpriced = s.unpriced + excluded.unpriced, units = s.units + excluded.units,
            input = s.input + excluded.input, output = s.output + excluded.output, cache_read = s.cache_read + excluded.cache_read,
            cache_write_5m = s.cache_write_5m + excluded.cache_write_5m, cache_write_1h = s.cache_write_1h + excluded.cache_write_1h,
            reasoning = s.reasoning + excluded.reasoning, cost_micros = s.cost_micros + excluded.cost_micros
    ), agents as (
        insert into usage_by_agent as s
        select l, usage_period(l, at), a, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from gone, generate_series(0, 3) l, unnest(array['', agent_id]) a group by 1, 2, 3
        on conflict (level, at, agent_id) do update set
            requests = s.requests + excluded.requests, unpriced = s.unpriced + excluded.unpriced, units = s.units + excluded.units,
            input = s.input + excluded.input, output = s.output + excluded.output, cache_read = s.cache_read + excluded.cache_read,
            cache_write_5m = s.cache_write_5m + excluded.cache_write_5m, cache_write_1h = s.cache_write_1h + excluded.cache_write_1h,
            reasoning = s.reasoning + excluded.reasoning, cost_micros = s.cost_micros + excluded.cost_micros
    )
    select count(*) into moved from gone;
    return moved;
end
$$;
-- +goose StatementEnd

-- Makes the sums anew from the rows. Once rows were pruned it refuses: their sums are
-- all there is of them. Writers wait for it.
-- +goose StatementBegin
create function usage_rebuild() returns void language plpgsql as $$
declare
    since timestamptz := (select before from usage_horizon);
begin
    if since > '-infinity' then
        raise exception 'rows were pruned, so the sums cannot be made from them';
    end if;
    lock table usage, usage_changes, usage_by_model, usage_by_user, usage_by_agent in exclusive mode;
    delete from usage_changes;
    delete from usage_by_model;
    delete from usage_by_user;
    delete from usage_by_agent;
    -- The lowest sums from the rows, the others from those below.
    insert into usage_by_model
    select 1, usage_period(1, at), agent_id, request_type, provider, model, tool, sum(requests), count(*) filter (where cost_micros is null), sum(units),
        sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), coalesce(sum(cost_micros), 0)
    from usage group by 2, 3, 4, 5, 6, 7;
    insert into usage_by_user
    select 2, usage_period(2, at), agent_id, user_id, sum(requests), count(*) filter (where cost_micros is null), sum(units),
        sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), coalesce(sum(cost_micros), 0)
    from usage group by 2, 3, 4;
    insert into usage_by_agent
    select 0, usage_period(0, at), agent_id, sum(requests), count(*) filter (where cost_micros is null), sum(units),
        sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), coalesce(sum(cost_micros), 0)
    from usage group by 2, 3;
    insert into usage_by_agent
    select 0, at, '', sum(requests), sum(unpriced), sum(units), sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
    from usage_by_agent where level = 0 group by at;
    for l in 1..3 loop
        insert into usage_by_model
        select l, usage_period(l, at), agent_id, request_type, provider, model, tool, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from usage_by_model where level = l - 1 and level >= 1 group by 2, 3, 4, 5, 6, 7;
        insert into usage_by_user
        select l, usage_period(l, at), agent_id, user_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from usage_by_user where level = l - 1 and level >= 2 group by 2, 3, 4;
        insert into usage_by_agent
        select l, usage_period(l, at), agent_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from usage_by_agent where level = l - 1 group by 2, 3;
    end loop;
end
$$;
-- +goose StatementEnd

-- Rows before this time were taken away; their sums stay. One of them that is
-- reported again must not count twice, so nothing from before is taken.
create table usage_horizon (before timestamptz not null);
insert into usage_horizon values ('-infinity');

-- Takes away rows from before a time and leaves their sums; says how many.
-- +goose StatementBegin
create function usage_prune(before timestamptz) returns bigint language plpgsql as $$
declare
    gone bigint;
begin
    perform set_config('pawgate.usage_quiet', 'on', true);
    update usage_horizon h set before = greatest(h.before, usage_prune.before);
    delete from usage u where u.at < usage_prune.before;
    get diagnostics gone = row_count;
    perform set_config('pawgate.usage_quiet', '', true);
    return gone;
end
$$;
-- +goose StatementEnd

-- What remains of a name behind the name of its price must be a version or a
-- date, or else a model that the list does not know would get its
-- elder sister's price: "-20250929", "@20250929", "-2025-09-29", "-v1:0",
-- "-latest", "-001", and the size of its window, "[1m]".
-- +goose StatementBegin
create function usage_same_model(rest text) returns boolean language sql immutable as $$
    select rest ~ '^([-@](\d{3}|\d{6}|\d{8}|\d{4}-\d{2}-\d{2}|latest))?([-:]v\d+(:\d+)?)?(\[[0-9]+[km]\])?$'
$$;
-- +goose StatementEnd

-- The price of a name at a time, or none. Gateways put who serves in front
-- ("azure/gpt-4o"), so a name is tried as it is and, where its front names a
-- provider of the list, as that provider's. The price of the provider comes
-- before that of any, the longest name before the others, a newer one before an
-- older one. A name with '*' fits everything that begins so.
-- +goose StatementBegin
create function usage_price(who text, called text, moment timestamptz) returns usage_prices language sql stable as $$
    with names as (
        select lower(who) as who, lower(called) as name, 0 as far
        union all
        select split_part(lower(called), '/', 1), substr(lower(called), strpos(called, '/') + 1), 1 where strpos(called, '/') > 1
    ), fits as (
        select n.who, n.far, n.name, left(n.name, k) || star as fit from names n, generate_series(1, length(n.name)) k, unnest(array['', '*']) star
    )
    select p.* from fits f join usage_prices p on p.name = f.fit and p.provider in ('', f.who)
    where p.valid_from <= moment
      and (right(p.name, 1) = '*' or usage_same_model(substr(f.name, length(p.name) + 1)))
    order by p.provider = '', f.far, length(rtrim(p.name, '*')) desc, right(p.name, 1) = '*', p.valid_from desc
    limit 1
$$;
-- +goose StatementEnd

-- What a usage costs at a price, in micro-dollars, rounded once; null as soon
-- as a part of it has no price, and above a million dollars, which no answer costs:
-- no row may make a sum, a report or a budget overflow for everybody.
-- +goose StatementBegin
create function usage_cost(p usage_prices, u usage) returns bigint language sql immutable as $$
    with prompt as (
        select u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h as tokens
    ), tier as (
        select coalesce((
            select t from jsonb_array_elements(p.tiers) t, prompt
            where (t ->> 'above')::bigint < prompt.tokens order by (t ->> 'above')::bigint desc limit 1), '{}') as t
    ), rate as (
        select t, coalesce((t ->> 'excess')::boolean, false) as excess,
               coalesce((t ->> 'input')::numeric, p.input) as input, coalesce((t ->> 'output')::numeric, p.output) as output,
               coalesce((t ->> 'cache_read')::numeric, p.cache_read) as cache_read,
               coalesce((t ->> 'cache_write_5m')::numeric, p.cache_write_5m) as cache_write_5m,
               coalesce((t ->> 'cache_write_1h')::numeric, p.cache_write_1h) as cache_write_1h,
               coalesce((t ->> 'reasoning')::numeric, p.reasoning, (t ->> 'output')::numeric, p.output) as reasoning
        from tier
    ), dear as ( -- the input that the tier's price is for
        select case when excess then least(u.input, prompt.tokens - (t ->> 'above')::bigint) else u.input end as tokens from rate, prompt
    ), charged as (
        select round((
              case when dear.tokens = 0 then 0 else dear.tokens * r.input end
            + case when u.input = dear.tokens then 0 else (u.input - dear.tokens) * p.input::numeric end
            + case when u.output = u.reasoning then 0 else (u.output - u.reasoning) * r.output end
            + case when u.reasoning = 0 then 0 else u.reasoning * r.reasoning end
            + case when u.cache_read = 0 then 0 else u.cache_read * r.cache_read end
            + case when u.cache_write_5m = 0 then 0 else u.cache_write_5m * r.cache_write_5m end
            + case when u.cache_write_1h = 0 then 0 else u.cache_write_1h * r.cache_write_1h end
            + case when u.units > 0 then u.units * p.unit::numeric
                   when u.model <> '' then u.requests * coalesce(p.unit, 0)::numeric else 0 end
        ) / 1000000) as micros
        from rate r, dear
        where p.id is not null
    )
    select micros::bigint from charged where micros <= 1000000000000
$$;
-- +goose StatementEnd

-- Records usage, given as a JSON array of objects named like the columns; says
-- how many rows were new, how many said more than the one recorded before, and
-- how many came from before the horizon and were not taken.
-- The same source_id again is the same usage: an answer that was logged while
-- it grew counts once, with the most that was said of it: more tokens, or a cost that was
-- not known.
-- +goose StatementBegin
create function usage_record(rows jsonb) returns table (added bigint, grown bigint, late bigint) language sql volatile as $$
    with given as (
        select distinct on (u.source, u.source_id) u
        from jsonb_array_elements(rows) with ordinality e (value, n),
             lateral jsonb_populate_record(null::usage, '{"id": 0, "user_id": "", "session_id": "", "task_id": "", "request_type": "chat",
                 "provider": "", "model": "", "asked_model": "", "tool": "", "requests": 1, "units": 0, "input": 0, "output": 0, "cache_read": 0,
                 "cache_write_5m": 0, "cache_write_1h": 0, "reasoning": 0}'::jsonb || jsonb_strip_nulls(e.value)) u
        order by u.source, u.source_id, u.input + u.output + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.units desc, n desc
    ), priced as (
        select (g.u).*, coalesce((g.u).reported_micros, usage_cost(p, g.u)) as cost,
               case when (g.u).reported_micros is not null then 'reported' when usage_cost(p, g.u) is null then '' else p.version end as version
        from given g
        left join lateral usage_price((g.u).provider, coalesce(nullif((g.u).model, ''), 'tool:' || (g.u).tool), (g.u).at) p on true
    ), written as (
        insert into usage as u (at, agent_id, user_id, session_id, task_id, request_type, provider, model, asked_model, tool, requests, units,
            input, output, cache_read, cache_write_5m, cache_write_1h, reasoning, reported_micros, cost_micros, price_version, source, source_id)
        select at, agent_id, user_id, session_id, task_id, request_type, provider, model, asked_model, tool, requests, units,
            input, output, cache_read, cache_write_5m, cache_write_1h, reasoning, reported_micros, cost, version, source, source_id
        from priced where at >= (select before from usage_horizon) order by source, source_id
        on conflict (source, source_id) do update set
            model = excluded.model, provider = excluded.provider, requests = excluded.requests, units = excluded.units,
            input = excluded.input, output = excluded.output, cache_read = excluded.cache_read, cache_write_5m = excluded.cache_write_5m,
            cache_write_1h = excluded.cache_write_1h, reasoning = excluded.reasoning,
            reported_micros = excluded.reported_micros, cost_micros = excluded.cost_micros, price_version = excluded.price_version
        where u.agent_id = excluded.agent_id
          and (u.input + u.output + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.units
               < excluded.input + excluded.output + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h + excluded.units
            or u.input + u.output + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.units
               = excluded.input + excluded.output + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h + excluded.units
               and u.cost_micros is null and excluded.cost_micros is not null)
        returning u.xmax = 0 as fresh
    )
    select count(*) filter (where fresh), count(*) filter (where not fresh),
           (select count(*) from given where (u).at < (select before from usage_horizon)) from written
$$;
-- +goose StatementEnd
