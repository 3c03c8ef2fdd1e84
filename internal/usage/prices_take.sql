-- all agents: prices belong to none.
select id, first from usage_prices_take($1, $2::jsonb, $3::timestamptz)
