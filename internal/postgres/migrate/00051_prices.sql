-- +goose Up
-- Importing prices, charging again by them, and a first list.

-- Takes a list of prices, a JSON array of objects named like the columns: what is
-- new holds from since, or, where that is null, always if the name had no price
-- before and from now on if it had another one. Gives the rows that were written.
-- +goose StatementBegin
create function usage_prices_take(label text, list jsonb, since timestamptz) returns table (id bigint, first boolean) language sql volatile as $$
    with given as (
        select distinct on (g.name, g.provider) g.*
        from jsonb_array_elements(list) with ordinality e (value, n),
             lateral jsonb_populate_record(null::usage_prices, '{"provider": "", "tiers": []}'::jsonb || jsonb_strip_nulls(e.value)) g
        order by g.name, g.provider, n desc
    ), held as (
        select g.*, p.id as had, (p.input, p.output, p.cache_read, p.cache_write_5m, p.cache_write_1h, p.reasoning, p.unit, p.tiers)
            is not distinct from (g.input, g.output, g.cache_read, g.cache_write_5m, g.cache_write_1h, g.reasoning, g.unit, g.tiers) as same
        from given g
        left join lateral (
            select * from usage_prices p where p.name = g.name and p.provider = g.provider and p.valid_from <= coalesce(since, now())
            order by p.valid_from desc limit 1) p on true
    ), written as (
        insert into usage_prices as p (version, provider, name, valid_from, input, output, cache_read, cache_write_5m, cache_write_1h, reasoning, unit, tiers)
        select label, provider, name, coalesce(since, case when had is null then '-infinity'::timestamptz else now() end),
               input, output, cache_read, cache_write_5m, cache_write_1h, reasoning, unit, tiers
        from held where had is null or not same
        on conflict (name, provider, valid_from) do update set version = excluded.version, input = excluded.input, output = excluded.output,
            cache_read = excluded.cache_read, cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h,
            reasoning = excluded.reasoning, unit = excluded.unit, tiers = excluded.tiers
        returning p.id, p.name, p.provider
    )
    select w.id, h.had is null from written w join held h using (name, provider)
$$;
-- +goose StatementEnd

-- Charges again what was recorded and is charged otherwise by now: all of it, or
-- where only some prices changed what they are for. What a source said it cost
-- stays. Prices are found once for each name and time between two changes.
-- +goose StatementBegin
create function usage_reprice(changed bigint[] default null) returns bigint language plpgsql as $$
declare
    n bigint;
begin
    with names as (
        select distinct provider, coalesce(nullif(model, ''), 'tool:' || tool) as name from usage_by_model where level = 3
        union
        select provider, coalesce(nullif(model, ''), 'tool:' || tool) from usage_changes
    ), times as (
        select valid_from, lead(valid_from, 1, 'infinity') over (order by valid_from) as until
        from (select valid_from from usage_prices union select '-infinity') t
    ), spans as materialized (
        select n.provider, n.name, t.valid_from, t.until, p
        from names n cross join times t left join lateral usage_price(n.provider, n.name, t.valid_from) p on true
        where changed is null or p.id = any (changed)
    ), due as (
        select u.id, usage_cost(s.p, u) as cost, case when usage_cost(s.p, u) is null then '' else (s.p).version end as version
        from usage u join spans s on s.provider = u.provider and s.name = coalesce(nullif(u.model, ''), 'tool:' || u.tool)
          and u.at >= s.valid_from and u.at < s.until
        where u.reported_micros is null
    )
    update usage u set cost_micros = d.cost, price_version = d.version
    from due d where d.id = u.id and (u.cost_micros, u.price_version) is distinct from (d.cost, d.version);
    get diagnostics n = row_count;
    return n;
end
$$;
-- +goose StatementEnd

-- Anthropic's list, as its documentation gave it in October 2026
-- (platform.claude.com/docs/en/about-claude/pricing). In dollars for a million
-- tokens, which times 1,000,000 is pico-dollars for one.
insert into usage_prices (version, provider, name, valid_from, input, output, cache_read, cache_write_5m, cache_write_1h, tiers)
select 'anthropic 2026-10-24', '', name, since, (1000000 * input)::bigint, (1000000 * output)::bigint, (1000000 * hit)::bigint,
       (1000000 * w5m)::bigint, (1000000 * w1h)::bigint, tiers::jsonb
from (values
    ('claude-fable-5-1',  '-infinity'::timestamptz, 10, 50, 0.25, 12.5, 20, '[]'),
    ('claude-mythos-5-1', '-infinity', 10, 50, 0.25, 12.5, 20, '[]'),
    ('claude-fable-5',    '-infinity', 10, 50, 1, 12.5, 20, '[]'),
    ('claude-mythos-5',   '-infinity', 10, 50, 1, 12.5, 20, '[]'),
    ('claude-opus-5-5',   '-infinity', 4, 20, 0.2, 5, 8, '[]'),
    ('claude-opus-5',     '-infinity', 5, 25, 0.5, 6.25, 10, '[]'),
    ('claude-opus-4-8',   '-infinity', 5, 25, 0.5, 6.25, 10, '[]'),
    ('claude-opus-4-7',   '-infinity', 5, 25, 0.5, 6.25, 10, '[]'),
    ('claude-opus-4-6',   '-infinity', 5, 25, 0.5, 6.25, 10, '[]'),
    ('claude-opus-4-5',   '-infinity', 5, 25, 0.5, 6.25, 10, '[]'),
    ('claude-opus-4-1',   '-infinity', 15, 75, 1.5, 18.75, 30, '[]'),
    ('claude-opus-4',     '-infinity', 15, 75, 1.5, 18.75, 30, '[]'),
    ('claude-sonnet-5-5', '-infinity', 2, 10, 0.2, 2.5, 4, '[]'),
    ('claude-sonnet-5-5', '2026-10-07 00:00:00+00', 2, 10, 0.1, 2.5, 4, '[]'),
    ('claude-sonnet-5',   '-infinity', 2, 10, 0.2, 2.5, 4, '[]'),
    ('claude-sonnet-4-6', '-infinity', 3, 15, 0.3, 3.75, 6, '[]'),
    ('claude-sonnet-4-5', '-infinity', 3, 15, 0.3, 3.75, 6,
        '[{"above": 200000, "input": 6000000, "output": 22500000, "cache_read": 600000, "cache_write_5m": 7500000, "cache_write_1h": 12000000}]'),
    ('claude-sonnet-4',   '-infinity', 3, 15, 0.3, 3.75, 6,
        '[{"above": 200000, "input": 6000000, "output": 22500000, "cache_read": 600000, "cache_write_5m": 7500000, "cache_write_1h": 12000000}]'),
    ('claude-3-7-sonnet', '-infinity', 3, 15, 0.3, 3.75, 6, '[]'),
    ('claude-haiku-5-5',  '-infinity', 0.1, 0.5, 0.01, 0.125, 0.2,
        '[{"above": 100000, "input": 500000, "output": 2500000, "cache_read": 50000, "cache_write_5m": 625000, "cache_write_1h": 1000000}]'),
    ('claude-haiku-4-5',  '-infinity', 1, 5, 0.1, 1.25, 2, '[]'),
    ('claude-3-5-haiku',  '-infinity', 0.8, 4, 0.08, 1, 1.6, '[]'),
    ('claude-3-opus',     '-infinity', 15, 75, 1.5, 18.75, 30, '[]'),
    ('claude-3-haiku',    '-infinity', 0.25, 1.25, 0.03, 0.3, 0.5, '[]')
) p (name, since, input, output, hit, w5m, w1h, tiers);
