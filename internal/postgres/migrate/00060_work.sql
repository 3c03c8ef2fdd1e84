-- +goose Up
-- The one queue: work that happens later, once, and is never lost. An item is
-- leased to a worker; whoever finishes it must hold the fence that the lease
-- came with, so a worker that was taken for dead records nothing.

-- Made by spawn_ephemeral for one piece of work, archived soon after it.
alter table agents add column ephemeral boolean not null default false;
create index agents_ephemeral on agents (reports_to) where ephemeral and state <> 'archived';

create table work (
    id              uuid primary key,
    kind            text not null,                 -- prompt: a model answers it; call: one tool call
    source          text not null,                 -- the tool that asked, schedule, reminder or notice
    agent_id        text not null references agents (id), -- who does it
    from_agent      text not null references agents (id), -- who asked for it
    payload         jsonb not null check (octet_length(payload::text) <= 400000),
    scopes          text[] not null default '{}',  -- what the one who asked could touch
    narrowed_by     text[] not null default '{}',  -- agents whose rights bound this work too
    root_id         uuid not null,                 -- the first item of its chain
    parent_id       uuid,                          -- the item whose run asked for it
    depth           integer not null default 0,
    session         text not null default '',
    notify          jsonb,                         -- where the result is told: channel, chat_id, thread_id
    idempotency_key text,
    state           text not null default 'queued' check (state in ('queued', 'running', 'done', 'dead', 'cancelled')),
    run_at          timestamptz not null default clock_timestamp(),
    attempts        integer not null default 0,
    max_attempts    integer not null default 3 check (max_attempts > 0),
    fence           bigint not null default 0,
    lease_until     timestamptz,
    worker          text not null default '',
    sent_at         timestamptz,                   -- when SQS was told of it last
    result          text not null default '',
    error           text not null default '',
    created_at      timestamptz not null default clock_timestamp(),
    started_at      timestamptz,
    finished_at     timestamptz,
    check ((finished_at is null) = (state in ('queued', 'running'))),
    check ((lease_until is null) = (state <> 'running')),
    unique (from_agent, idempotency_key)
);
create index work_queued on work (run_at) where state = 'queued';
create index work_leased on work (lease_until) where state = 'running';
create index work_unfinished on work (agent_id) where state in ('queued', 'running');
create index work_asked on work (from_agent, created_at desc, id desc);
create index work_done_by on work (agent_id, session, created_at desc);
create index work_chain on work (root_id);
create index work_finished on work (finished_at) where finished_at is not null;

-- What has an end has it for good: one result or one dead letter.
-- +goose StatementBegin
create function work_is_final() returns trigger language plpgsql as $$
begin
    raise exception 'work % has ended', old.id;
end
$$;
-- +goose StatementEnd
create trigger work_is_final before update on work for each row when (old.finished_at is not null) execute function work_is_final();

-- Adds one item and gives its id, or says why not. verdict:
--   queued (id, depth) · duplicate (id) · conflict · unavailable ·
--   too_deep (limit) · runaway (seconds) · chain (limit) · full (limit)
-- parent is the item whose run asks; it must be running and be the asker's.
-- +goose StatementBegin
create function work_enqueue(item jsonb, max_depth integer, per_minute integer, per_chain integer, most_queued integer)
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
        select * into parent from work w where w.id = (item ->> 'parent_id')::uuid and w.agent_id = asker and w.state = 'running';
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
