-- +goose Up
-- Agents, their credentials and the emergency stop: who calls, and whether
-- anybody may.

create table agents (
    id                      text primary key check (id ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    display_name            text not null default '',
    role                    text not null default 'specialist',
    state                   text not null default 'active' check (state in ('active', 'paused', 'archived')),
    model                   text not null default '',
    reports_to              text references agents (id),
    icon                    text not null default '',
    trigger                 text not null default '',
    -- The capability list. An empty allowed_tools means none; '*' means every tool.
    allowed_tools           text[] not null default '{}',
    denied_tools            text[] not null default '{}',
    approval_required_tools text[] not null default '{}',
    scoped_tools            text[] not null default '{}',
    -- What agent.toml said and this table has no column for, kept as it was written.
    source                  text not null default '',
    created_at              timestamptz not null default now(),
    updated_at              timestamptz not null default now()
);

create table api_keys (
    id           text primary key,
    agent_id     text not null references agents (id),
    name         text not null default '',
    hint         text not null,                    -- the first characters, to recognise a key by
    hash         bytea not null unique,            -- SHA-256 of the whole key
    scopes       text[] not null default '{}',
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
create index api_keys_by_agent on api_keys (agent_id);

-- One row while a stop is in force and for the record afterwards. No agent
-- means every agent.
create table stops (
    id         bigint generated always as identity primary key,
    agent_id   text references agents (id),
    reason     text not null default '',
    stopped_by text not null,
    stopped_at timestamptz not null default now(),
    resumed_by text,
    resumed_at timestamptz
);
create unique index stops_in_force on stops (coalesce(agent_id, '')) where resumed_at is null;

-- What each sidecar last said of itself.
create table sidecars (
    id          text primary key,
    categories  text[] not null,
    report      jsonb not null,
    reported_at timestamptz not null default now()
);

