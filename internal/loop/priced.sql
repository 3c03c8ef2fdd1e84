-- all agents: prices are everybody's.
select (usage_price($1, $2, now())).id is not null as priced
