-- +goose Up
-- What bounds a run bounds what it leaves for later: a schedule or a reminder
-- that it made, and a run of a schedule that it asked for.
alter table schedules add column narrowed_by text[] not null default '{}';
alter table reminders add column narrowed_by text[] not null default '{}';

-- As before, save that the run may be of another than the one in whose name the
-- work is asked for: run_by, whose run parent_id is.
-- +goose StatementBegin
create or replace function work_enqueue(item jsonb, max_depth integer, per_minute integer, per_chain integer, most_queued integer)
returns jsonb language plpgsql as $$
declare
    doer   text := item ->> 'agent_id';
    asker  text := item ->> 'from_agent';
    parent work;
    known  work;
    made   work;
begin
    -- One at a time for each asker, so that counts are true.
    perform pg_advisory_xact_lock(hashtextextended(asker, 60));
    if item ->> 'idempotency_key' is not null then
        select * into known from work w where w.from_agent = asker and w.idempotency_key = item ->> 'idempotency_key';
        if found then
            if known.agent_id = doer and known.payload = item -> 'payload' then
                return jsonb_build_object('verdict', 'duplicate', 'id', known.id, 'depth', known.depth);
            end if;
            return '{"verdict": "conflict"}';
        end if;
    end if;
    if not exists (select from agents a where a.id = doer and a.state = 'active')
       or exists (select from stops s where s.resumed_at is null and (s.agent_id is null or s.agent_id = doer)) then
        return '{"verdict": "unavailable"}';
    end if;
    if item ->> 'parent_id' is not null then
        select * into parent from work w where w.id = (item ->> 'parent_id')::uuid and w.agent_id = coalesce(item ->> 'run_by', asker) and w.state = 'running';
        if not found then
            return '{"verdict": "orphan"}'; -- its run has ended, or was never the asker's
        end if;
        if parent.depth + 1 > max_depth then
            return jsonb_build_object('verdict', 'too_deep', 'limit', max_depth);
        end if;
        perform pg_advisory_xact_lock(hashtextextended(parent.root_id::text, 61));
        if (select count(*) from work w where w.root_id = parent.root_id) >= per_chain then
            return jsonb_build_object('verdict', 'chain', 'limit', per_chain);
        end if;
    end if;
    if (select count(*) from work w where w.from_agent = asker and w.created_at > clock_timestamp() - interval '1 minute'
                                     and w.source not in ('schedule', 'reminder', 'notice')) >= per_minute then
        return jsonb_build_object('verdict', 'runaway', 'limit', per_minute);
    end if;
    if (select count(*) from work w where w.agent_id = doer and w.state = 'queued') >= most_queued then
        return jsonb_build_object('verdict', 'full', 'limit', most_queued);
    end if;
    insert into work (id, kind, source, agent_id, from_agent, payload, scopes, narrowed_by, root_id, parent_id, depth, session, notify,
                      idempotency_key, run_at, max_attempts)
    values ((item ->> 'id')::uuid, item ->> 'kind', item ->> 'source', doer, asker, item -> 'payload',
            array(select jsonb_array_elements_text(item -> 'scopes')),
            array(select distinct value from unnest(coalesce(parent.narrowed_by, '{}') || array(select jsonb_array_elements_text(item -> 'narrowed_by'))) as value),
            coalesce(parent.root_id, (item ->> 'id')::uuid), parent.id, coalesce(parent.depth + 1, 0), coalesce(item ->> 'session', ''),
            nullif(item -> 'notify', 'null'), item ->> 'idempotency_key',
            greatest(clock_timestamp(), coalesce((item ->> 'run_at')::timestamptz, clock_timestamp())), coalesce((item ->> 'max_attempts')::integer, 3))
    returning * into made;
    return jsonb_build_object('verdict', 'queued', 'id', made.id, 'depth', made.depth);
end
$$;
-- +goose StatementEnd
