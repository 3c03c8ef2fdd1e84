-- all agents: there is one clock.
select id, cron, timezone, misfire, next_slot, coalesce(@now::timestamptz, clock_timestamp()) as now
from schedules
where enabled and next_slot <= coalesce(@now::timestamptz, clock_timestamp())
order by next_slot
limit @limit
