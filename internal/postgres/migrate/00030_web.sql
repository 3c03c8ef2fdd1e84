-- +goose Up
-- Pages that agents fetched. A page belongs to the agent that asked for it:
-- an address may carry a secret, and what one agent was shown must not be
-- what another is told.

create table web_pages (
    agent_id      text not null references agents (id) on delete cascade, -- a cache keeps nobody alive
    key           bytea not null,                  -- SHA-256 of the address asked for
    url           text not null,                   -- where the answer came from, after redirects
    status        smallint not null,
    content_type  text not null default '',
    etag          text not null default '',
    last_modified text not null default '',
    body          bytea not null,                  -- as sent, decompressed
    truncated     boolean not null default false,  -- the body was longer than what is taken
    size          integer not null generated always as (octet_length(body)) stored,
    fetched_at    timestamptz not null,
    checked_at    timestamptz not null,            -- when the server last said that it is still so
    primary key (agent_id, key)
);
create index web_pages_by_age on web_pages (checked_at desc) include (size);
