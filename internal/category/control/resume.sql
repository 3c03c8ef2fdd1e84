-- all agents: only an operator comes here.
update stops
set resumed_by = @by, resumed_at = clock_timestamp()
where resumed_at is null and coalesce(agent_id, '') = @agent_id
