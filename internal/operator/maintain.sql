-- all agents: it keeps the house.
with outcomes as (
    delete from idempotency where started_at < now() - interval '24 hours' returning 1
), old as (
    delete from approvals
    where coalesce(decided_at, expires_at) < now() - interval '30 days' and coalesce(covers_until, expires_at) < now()
    returning 1
), stale as (
    delete from decisions where state = 'open' and expires_at < now() - interval '30 days' returning 1
), full_again as (
    -- One that is in use at this very moment stays: who has it may wait for another.
    delete from buckets where key in (select key from buckets where at < now() - interval '1 day' for update skip locked) returning 1
), ended as (
    delete from work where finished_at < now() - interval '30 days' returning 1
), slots as (
    delete from firings where fired_at < now() - interval '30 days' returning 1
), once as (
    -- A schedule that has had its last slot, 30 days later.
    delete from schedules where next_slot is null and updated_at < now() - interval '30 days'
        and not exists (select from firings f where f.schedule_id = id and f.fired_at > now() - interval '30 days')
    returning 1
), reminded as (
    delete from reminders where ended_at < now() - interval '30 days' returning 1
), counters as (
    delete from usage_series where seen_at < now() - interval '60 days' returning 1
), over as (
    delete from budget_spent s where began < now() - interval '400 days' returning 1
), unanswered as (
    delete from skill_misses where last_at < now() - interval '400 days' returning 1
), hubs as (
    delete from skill_hubs where fetched_at < now() - interval '30 days' returning 1
), versions as (
    -- The one in use and the newest 20 of each skill stay.
    delete from skill_versions v using skills s
    where s.id = v.skill_id and v.version <> s.version and v.created_at < now() - interval '30 days'
      and v.version <= (select max(l.version) from skill_versions l where l.skill_id = s.id) - 20
    returning 1
), months as (
    select (date_trunc('month', now()) + n * interval '1 month')::date as month from generate_series(0, 3) n
), made as (
    select to_regclass(format('audit_%s', to_char(month, 'YYYY_MM'))) is null as missing, audit_partition(month) from months
)
select (select count(*) from outcomes) as outcomes, (select count(*) from old) as approvals, (select count(*) from stale) as decisions,
       (select count(*) from full_again) as buckets, (select count(*) from ended) as work, (select count(*) from slots) as slots,
       (select count(*) from once) as schedules, (select count(*) from reminded) as reminders, (select count(*) from made where missing) as partitions,
       (select count(*) from unanswered) + (select count(*) from hubs) + (select count(*) from versions) as skills,
       (select count(*) from counters) + (select count(*) from over) as counters
