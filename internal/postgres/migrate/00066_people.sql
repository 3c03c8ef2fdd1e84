-- +goose Up
-- The people that agents deal with: who is behind an account of a channel, and
-- whom an agent lets in.

-- Written by operators only: an agent that could write here could forge a
-- person.
create table people (
    id           text primary key check (id ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    display_name text not null,
    roles        text[] not null default '{}',
    project_ids  text[] not null default '{}',
    updated_at   timestamptz not null default now()
);

-- Accounts, e-mail addresses too (channel email, in lower case). One account
-- is one person's.
create table person_handles (
    channel     text not null,
    external_id text not null,
    person_id   text not null references people (id) on delete cascade,
    primary key (channel, external_id)
);
create index person_handles_by_person on person_handles (person_id);

-- Who may reach an agent by a channel. asked: an agent wishes it and a person
-- has to decide; invited: a person gave a code away; approved: may come in.
create table pairings (
    agent_id     text not null references agents (id),
    channel      text not null,
    subject      text not null,                    -- as the channel names the user or group
    state        text not null check (state in ('asked', 'invited', 'approved', 'revoked')),
    code         bytea,                            -- PBKDF2 of an invitation's code
    salt         bytea,
    expires_at   timestamptz,                      -- of the code
    wrong        integer not null default 0,       -- codes that were tried in vain
    changed_by   text not null,
    changed_at   timestamptz not null default now(),
    primary key (agent_id, channel, subject)
);
