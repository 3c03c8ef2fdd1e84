with put_away as (
    update agents set state = 'archived', archived_at = @now, updated_at = @now, version = version + 1
    where id = @agent_id
    returning id, reports_to
), moved as (
    update agents a set reports_to = p.reports_to, updated_at = @now, version = a.version + 1
    from put_away p
    where a.reports_to = p.id
    returning a.id
), cancelled as (
    update approvals set state = 'cancelled', reason = 'the agent was removed', decided_by = @by, decided_at = clock_timestamp()
    where agent_id = @agent_id and state = 'pending'
    returning id
), revoked as (
    update approvals set state = 'revoked', reason = 'the agent was removed'
    where agent_id = @agent_id and state = 'approved'
    returning expires_at, covers_until
), ended as (
    -- What is being finished at this moment is left to whoever does it.
    update work w set state = 'cancelled', lease_until = null, finished_at = clock_timestamp(), error = 'the agent was removed'
    from (select id from work where agent_id = @agent_id and state in ('queued', 'running') for update skip locked) unfinished
    where w.id = unfinished.id
    returning w.id
), orphaned as (
    -- Others would work on with the rights of an agent that has none any more.
    update schedules set enabled = false, updated_at = clock_timestamp(), version = version + 1
    where created_by = @agent_id and agent_id <> @agent_id and enabled
    returning id
)
select coalesce(p.reports_to, '') as moved_to,
       coalesce((select array_agg(m.id order by m.id) from moved m), '{}') as moved,
       (select count(*) from api_keys k where k.agent_id = p.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > @now)) as keys,
       (select count(*) from oauth_subjects o where o.agent_id = p.id) as subjects,
       (select count(*) from cancelled) as approvals,
       (select count(*) from revoked where coalesce(covers_until, expires_at) > clock_timestamp()) as grants,
       (select count(*) from ended) as work,
       (select count(*) from schedules s where s.agent_id = p.id and s.enabled) as schedules,
       (select count(*) from orphaned) as orphaned,
       (select count(*) from reminders r where r.agent_id = p.id and r.state = 'pending') as reminders
from put_away p
