-- +goose Up
-- Everyone's sums are an agent '' of their own, and one agent's are found without
-- reading the others', so that a year by day is read as hours and quarters in any
-- time zone.
create index usage_by_agent_one on usage_by_agent (agent_id, level, at);
insert into usage_by_agent
select level, at, '', sum(requests), sum(unpriced), sum(units), sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
from usage_by_agent group by 1, 2;

-- +goose StatementBegin
create or replace function usage_fold(most integer default 100000) returns bigint language plpgsql as $$
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

-- Makes the sums anew from the rows, but for what is older than the horizon:
-- those rows are gone and the sums of their months are all there is. Writers
-- wait for it.
-- +goose StatementBegin
create or replace function usage_rebuild() returns void language plpgsql as $$
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

-- How far the counters of telemetry have come that only ever grow. A series is
-- known by its attributes, a restart by its start; times are nanoseconds since
-- 1970, as OTLP has them.
create table usage_series (
    agent_id text not null,
    series   text not null,
    started  bigint not null,
    last     bigint not null,
    total    numeric not null,
    seen_at  timestamptz not null default now(),
    primary key (agent_id, series, started)
);

-- Takes points, a JSON array of {"series", "started", "last", "total"}, and gives
-- by how much each has grown since the last one of its series, in their order. One
-- that came before, or that a later one overtook, has grown by nothing.
-- +goose StatementBegin
create function usage_advance(agent text, points jsonb) returns jsonb language plpgsql as $$
declare
    p     record;
    s     usage_series;
    grown jsonb := '[]';
    by_n  jsonb := '{}';
begin
    for p in
        select r.*, e.n from jsonb_array_elements(points) with ordinality e (value, n),
            lateral jsonb_to_record(e.value) r (series text, started bigint, last bigint, total numeric)
        order by r.series, r.started, r.last, e.n
    loop
        insert into usage_series (agent_id, series, started, last, total) values (agent, p.series, p.started, 0, 0) on conflict do nothing;
        select * into s from usage_series where agent_id = agent and series = p.series and started = p.started for update;
        if p.last > s.last then
            -- Less than before under the same start is a counter that began again.
            by_n := by_n || jsonb_build_object(p.n::text, case when p.total >= s.total then p.total - s.total else p.total end);
            update usage_series set last = p.last, total = p.total, seen_at = now() where agent_id = agent and series = p.series and started = p.started;
        end if;
    end loop;
    select coalesce(jsonb_agg(coalesce(by_n -> n::text, '0') order by n), '[]') into grown from generate_series(1, jsonb_array_length(points)) n;
    return grown;
end
$$;
-- +goose StatementEnd
