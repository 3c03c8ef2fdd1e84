-- +goose Up
-- What no answer of a model can cost is not known, so that no row makes a sum,
-- a report or a budget overflow for everybody: a million dollars.
alter table usage add constraint usage_reported_bound check (reported_micros <= 1000000000000);

-- As before, with that bound.
-- +goose StatementBegin
create or replace function usage_cost(p usage_prices, u usage) returns bigint language sql immutable as $$
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

-- As before; and what says the cost of the same answer, which was not known
-- before, says more of it.
-- +goose StatementBegin
create or replace function usage_record(rows jsonb) returns table (added bigint, grown bigint, late bigint) language sql volatile as $$
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
