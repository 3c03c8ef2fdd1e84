-- +goose Up
-- Sums by agent alone: a report by day of a zone reads hours, or quarters where
-- the zone's hours begin between those of UTC, and of those by model there are
-- too many. By model there are hours, days and months, by user days and
-- months: below that there are nearly as many sums as rows, so rows are read.
alter index usage_by_agent rename to usage_of_agent;
create table usage_by_agent (
    level smallint not null, at timestamptz not null, agent_id text not null,
    requests bigint not null, unpriced bigint not null, units bigint not null, input bigint not null, output bigint not null,
    cache_read bigint not null, cache_write_5m bigint not null, cache_write_1h bigint not null, reasoning bigint not null, cost_micros bigint not null,
    primary key (level, at, agent_id)
);
create index usage_of_user on usage (user_id, at) where user_id <> '';

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
        select l, usage_period(l, at), agent_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output),
            sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
        from gone, generate_series(0, 3) l group by 1, 2, 3
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

-- What was recorded before: usage_fold adds what waits, this what does not.
insert into usage_by_agent
select l, usage_period(l, at), agent_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
from usage_by_model, generate_series(1, 3) l where level = 1 group by 1, 2, 3;
insert into usage_by_agent
select 0, at, agent_id, sum(requests), sum(unpriced), sum(units), sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(reasoning), sum(cost_micros)
from usage_by_model where level = 0 group by 2, 3;
delete from usage_by_model where level < 1;
delete from usage_by_user where level < 2;
