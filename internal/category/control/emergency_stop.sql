-- all agents: @agent_id was checked with reach.sql.
-- One statement: nobody can approve between the stop and the end of what is pending.
-- The clock is the database's, by which work has its age too: an instance whose
-- own is behind would leave work alive that the stop came over.
with stopped as (
    insert into stops (agent_id, reason, stopped_by, stopped_at)
    values (nullif(@agent_id, ''), @reason, @by, clock_timestamp())
    on conflict (coalesce(agent_id, '')) where resumed_at is null do nothing
    returning id
), cancelled as (
    update approvals
    set state = 'cancelled', reason = 'an emergency stop', decided_by = @by, decided_at = clock_timestamp()
    where state = 'pending' and (@agent_id = '' or agent_id = @agent_id) and exists (select from stopped)
    returning id
), killed as (
    -- Queued work ends; a run under way finds its lease gone. What slips in
    -- meanwhile is older than the stop and is swept.
    update work
    set state = 'cancelled', error = 'an emergency stop', finished_at = clock_timestamp(), lease_until = null
    where state in ('queued', 'running') and (@agent_id = '' or @agent_id in (agent_id, from_agent)) and exists (select from stopped)
    returning id
)
select (select count(*) from stopped) as stops, (select count(*) from cancelled) as cancelled, (select count(*) from killed) as killed
