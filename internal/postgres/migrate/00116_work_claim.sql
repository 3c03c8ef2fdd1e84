-- +goose Up
-- Items of one lane are done one at a time, in the order in which they are due: the
-- runs of a schedule, also when several slots are made up for at once.
alter table work add column lane text;
create index work_lanes on work (lane, run_at, id) where lane is not null and finished_at is null;

-- Whether nothing of an item's lane comes before it. Whoever asks looks first
-- whether it has one, which costs nothing.
-- +goose StatementBegin
create function work_turn(w work) returns boolean language sql stable as $$
    select not exists (
        select from work e
        where e.lane = w.lane and e.finished_at is null and e.id <> w.id and (e.state = 'running' or (e.run_at, e.id) < (w.run_at, w.id)))
$$;
-- +goose StatementEnd

-- max_concurrent bounds how many prompts of an agent are answered at once. Single
-- calls (a notice, a reminder) are not counted and do not wait: they cost no model.

-- With these a bound costs the same however much waits.
create index agents_bounded on agents (id) where max_concurrent is not null;
create index work_prompts_waiting on work (agent_id, run_at, id) where state = 'queued' and kind = 'prompt';
create index work_prompts_running on work (agent_id) where state = 'running' and kind = 'prompt';

-- The prompts of agents with such a bound that may start now, the oldest first
-- for as many places as are free; with wanted, of the agents of those items.
-- +goose StatementBegin
create function work_places(wanted uuid[]) returns setof uuid language sql stable as $$
    select q.id
    from agents a cross join lateral (
        select w.id
        from work w
        where w.agent_id = a.id and w.kind = 'prompt' and w.state = 'queued' and w.run_at <= clock_timestamp() and (w.lane is null or work_turn(w))
          and not exists (select from stops s where s.agent_id is null or s.agent_id in (w.agent_id, w.from_agent)
                          having bool_or(s.resumed_at is null or s.stopped_at >= w.created_at))
        order by w.run_at, w.id
        limit greatest(0, a.max_concurrent - (select count(*) from work r where r.agent_id = a.id and r.kind = 'prompt' and r.state = 'running'))
    ) q
    where a.max_concurrent is not null and a.state = 'active'
      and (wanted is null or a.id in (select o.agent_id from work o where o.id = any(wanted)))
$$;
-- +goose StatementEnd

-- Leases up to most items that are due; with wanted, of those. Workers do not wait
-- for each other, save where an agent with a bound has something due: then one
-- counts at a time, and each statement here sees what those before it took.
-- +goose StatementBegin
create function work_claim(wanted uuid[], most integer, by_worker text, lease double precision) returns setof work language plpgsql
set plan_cache_mode = force_custom_plan as $$ -- what is wanted decides the plan
declare
    bounded boolean := exists (select from agents a
                               where a.max_concurrent is not null and a.state = 'active'
                                 and (wanted is null or a.id in (select o.agent_id from work o where o.id = any(wanted)))
                                 and exists (select from work w where w.agent_id = a.id and w.kind = 'prompt' and w.state = 'queued' and w.run_at <= clock_timestamp()));
begin
    if bounded then
        perform pg_advisory_xact_lock(hashtextextended('work_claim', 62));
    end if;
    return query
    with due as (
        select w.id
        from work w join agents a on a.id = w.agent_id
        where w.state = 'queued' and w.run_at <= clock_timestamp() and a.state = 'active' and (w.lane is null or work_turn(w))
          and (wanted is null or w.id = any(wanted))
          and not exists (select from stops s where s.agent_id is null or s.agent_id in (w.agent_id, w.from_agent)
                          having bool_or(s.resumed_at is null or s.stopped_at >= w.created_at))
          and (a.max_concurrent is null or w.kind <> 'prompt' or bounded and w.id in (select work_places(wanted)))
        order by w.run_at
        for update of w skip locked
        limit most
    )
    update work w
    set state = 'running', fence = w.fence + 1, attempts = w.attempts + 1, worker = by_worker, error = '',
        lease_until = clock_timestamp() + make_interval(secs => lease), started_at = coalesce(w.started_at, clock_timestamp())
    from due
    where w.id = due.id
    returning w.*;
end
$$;
-- +goose StatementEnd
