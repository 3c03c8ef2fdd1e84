-- all agents: prices belong to none.
select name, provider, case when valid_from = '-infinity' then 'always' else to_char(valid_from at time zone 'UTC', 'YYYY-MM-DD') end as "from",
       input / 1e6::float8 as input, output / 1e6::float8 as output, cache_read / 1e6::float8 as cache_read,
       cache_write_5m / 1e6::float8 as cache_write5m, cache_write_1h / 1e6::float8 as cache_write1h, unit / 1e12::float8 as unit,
       jsonb_array_length(tiers) as tiers, version
from usage_prices
where starts_with(name, lower(@name))
order by name, provider, valid_from
limit @limit
