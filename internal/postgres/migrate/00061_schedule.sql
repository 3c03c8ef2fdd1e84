-- +goose Up
-- What is due at a time: schedules, the record of each of their slots, and
-- reminders. Slots are computed by package schedule and never here.

create table schedules (
    id             text primary key,
    agent_id       text not null references agents (id), -- who does the task
    created_by     text not null references agents (id), -- who may change the schedule, and bounds the run's rights
    name           text not null,
    cron           text not null,
    timezone       text not null,
    task           text not null,
    enabled        boolean not null default true,
    notify         jsonb,                          -- where results are told: channel, chat_id, thread_id
    misfire        text not null default 'once' check (misfire in ('skip', 'once', 'all')), -- slots that nobody was there for
    overlap        text not null default 'skip' check (overlap in ('skip', 'queue')),       -- a slot while the last run goes on
    jitter_seconds integer not null default 0 check (jitter_seconds between 0 and 3600),
    scopes         text[] not null default '{}',   -- what the one who made it could touch
    next_slot      timestamptz,                    -- null: there is none any more
    version        bigint not null default 1,
    created_at     timestamptz not null default clock_timestamp(),
    updated_at     timestamptz not null default clock_timestamp(),
    unique (agent_id, name)
);
create index schedules_due on schedules (next_slot) where enabled;
create index schedules_made on schedules (created_by);

-- One row for a slot, whoever claims it and how often.
create table firings (
    schedule_id text not null references schedules (id) on delete cascade,
    slot        timestamptz not null,
    state       text not null check (state in ('queued', 'missed', 'overlapped', 'suspended')),
    missed      integer not null default 0,        -- older slots that were passed over with it
    manual      boolean not null default false,    -- run_cron_task
    work_id     uuid,                              -- the item, when state is queued
    fired_at    timestamptz not null default clock_timestamp(),
    primary key (schedule_id, slot)
);
create index firings_by_age on firings (fired_at);

create table reminders (
    id         text primary key,
    agent_id   text not null references agents (id),
    due_at     timestamptz not null,
    mode       text not null check (mode in ('direct', 'agent_callback')),
    channel    text not null,
    chat_id    text not null,
    message    text not null default '',
    prompt     text not null default '',
    scopes     text[] not null default '{}',
    state      text not null default 'pending' check (state in ('pending', 'fired', 'cancelled')),
    work_id    uuid,                               -- the item, once fired
    created_at timestamptz not null default clock_timestamp(),
    ended_at   timestamptz                         -- fired or cancelled
);
create index reminders_due on reminders (due_at) where state = 'pending';
create index reminders_by_agent on reminders (agent_id, due_at);
