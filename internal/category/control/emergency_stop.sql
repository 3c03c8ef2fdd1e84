-- all agents: @agent_id was checked with reach.sql.
insert into stops (agent_id, reason, stopped_by, stopped_at)
values (nullif(@agent_id, ''), @reason, @by, @now)
on conflict (coalesce(agent_id, '')) where resumed_at is null do nothing
