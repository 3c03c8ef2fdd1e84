-- +goose Up
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
