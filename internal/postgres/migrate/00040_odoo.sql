-- +goose Up
-- Which Odoo an agent works with, what it may do there, and what it did.

-- One row an agent. Address, database, login and secret are one whole: there
-- is no default row to inherit a part from. Only operators write it.
create table odoo_connections (
    agent_id        text primary key references agents (id) on delete cascade,
    url             text not null,
    database        text not null,
    login           text not null,
    secret          text not null,                 -- a reference such as env://NAME, never the secret
    secret_kind     text not null check (secret_kind in ('password', 'api_key')),
    companies       bigint[] not null default '{}', -- empty: the user's own choice
    lang            text not null default '',      -- empty: the user's own
    timezone        text not null default '',      -- empty: the user's own
    allowed_models  text[] not null,
    denied_models   text[] not null,               -- wins over allowed_models
    denied_fields   text[] not null,
    allowed_actions text[] not null,               -- read, search, create, write, unlink, execute; "verb:pattern"
    set_by          text not null,
    set_at          timestamptz not null,

    -- What was found when it was last tested; null after a change.
    found_at        timestamptz,
    found_version   text not null default '',
    found_major     integer not null default 0,
    found_door      text not null default '',
    found_uid       bigint not null default 0,
    found_lang      text not null default '',
    found_timezone  text not null default '',
    found_edition   text not null default '',
    found_modules   text[] not null default '{}'
);

-- The fields of models, as a user sees them: rights hide fields, and labels
-- are translated. Kept for an hour; asked again when Odoo knows a field no more.
create table odoo_fields (
    url        text not null,
    database   text not null,
    version    text not null,
    uid        bigint not null,
    lang       text not null,
    model      text not null,
    fields     jsonb not null,
    fetched_at timestamptz not null,
    primary key (url, database, version, uid, lang, model)
);

-- What agents changed. The values before are kept so that a change can be
-- explained and, where Odoo allows it, put back.
create table odoo_writes (
    id         text primary key,
    agent_id   text not null references agents (id),
    request_id text not null,
    url        text not null,
    database   text not null,
    login      text not null,
    model      text not null,
    method     text not null,
    record_ids bigint[] not null,                  -- of a create: once it is done
    before     jsonb not null,                     -- [{"id": 45, "stage_id": 1}], only the fields concerned
    values     jsonb not null,
    state      text not null check (state in ('started', 'done', 'failed', 'unknown')),
    note       text not null default '',
    started_at timestamptz not null,
    ended_at   timestamptz
);
create index odoo_writes_by_agent on odoo_writes (agent_id, started_at desc);

-- Documents that odoo_report fetched, for the agent that asked. Kept for a week.
create table odoo_files (
    id         text primary key,
    agent_id   text not null references agents (id) on delete cascade,
    name       text not null,
    media_type text not null,
    content    bytea not null,
    created_at timestamptz not null
);
create index odoo_files_by_age on odoo_files (created_at);
