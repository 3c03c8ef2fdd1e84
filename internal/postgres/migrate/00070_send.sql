-- +goose Up
-- Where agents may send messages, and what they sent.

-- One bot or app of an agent on one platform. Only operators write it; an
-- agent that could pair an address with a secret's reference would be sent
-- the secret.
create table channels (
    agent_id      text not null references agents (id) on delete cascade,
    channel       text not null,
    base_url      text not null default '',   -- empty: the platform's public API
    account       text not null default '',   -- what is no secret, such as a phone number id
    secret        text not null,              -- a reference such as env://NAME, never the secret
    second_secret text not null default '',   -- another, where the platform needs one
    set_by        text not null,
    set_at        timestamptz not null,

    -- What the platform last said.
    works_since   timestamptz,                -- null: it does not, or was never asked
    last_sent_at  timestamptz,
    last_error    text not null default '',
    last_error_at timestamptz,
    primary key (agent_id, channel)
);

-- The chats that it may write to; "*" is any.
create table channel_targets (
    agent_id text not null,
    channel  text not null,
    target   text not null,
    name     text not null default '',
    set_by   text not null,
    set_at   timestamptz not null,
    primary key (agent_id, channel, target),
    foreign key (agent_id, channel) references channels (agent_id, channel) on delete cascade
);
create unique index channel_targets_by_name on channel_targets (agent_id, channel, lower(name)) where name <> '';

-- How a channel behaves, as a whole ("global") or in one chat.
create table channel_settings (
    agent_id   text not null references agents (id) on delete cascade,
    channel    text not null,
    scope_id   text not null,
    key        text not null,
    value      jsonb not null,
    updated_by text not null,
    updated_at timestamptz not null,
    primary key (agent_id, channel, scope_id, key)
);

-- Messages under way and sent, for a month. The key is the caller's, or made
-- of the message.
create table outbox (
    id          text primary key,
    agent_id    text not null references agents (id) on delete cascade,
    key         text not null,
    hash        text not null,                -- of channel, target and content
    channel     text not null,
    target      text not null,
    done        boolean not null default false,
    lease_until timestamptz not null,         -- until then one call works on it
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    unique (agent_id, key)
);
create index outbox_by_age on outbox (agent_id, updated_at);

-- Its parts, in order. "sending" outside of a lease is a call that died: its
-- fate is unknown.
create table outbox_parts (
    outbox_id  text not null references outbox (id) on delete cascade,
    n          integer not null,
    key        uuid not null,
    kind       text not null check (kind in ('text', 'photo', 'sticker')),
    body       text not null,
    markup     boolean not null,
    plain      text not null,
    state      text not null default 'pending' check (state in ('pending', 'sending', 'sent', 'refused', 'unknown')),
    first_try  timestamptz,                   -- of those whose fate is open
    tries      integer not null default 0,
    message_id text not null default '',
    code       text not null default '',      -- the platform's, of the last failure
    primary key (outbox_id, n)
);
