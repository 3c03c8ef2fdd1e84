-- all agents: $1 says whose.
select usage_advance($1, $2::jsonb) as grown
