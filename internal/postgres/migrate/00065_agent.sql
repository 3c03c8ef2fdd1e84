-- +goose Up
-- What may be set of an agent besides who it is, its persona, and how it came
-- to be and was put away. Null means that nobody has said: an imported
-- agent.toml keeps its own word then.

alter table agents
    add column fallback_model    text,
    add column api_mode          text check (api_mode in ('cli', 'direct', 'auto')),
    add column budget_cents      bigint check (budget_cents >= 0),           -- for a month
    add column max_concurrent    integer check (max_concurrent between 1 and 100),
    add column heartbeat_enabled boolean,
    add column heartbeat_cron    text,
    add column evolution         jsonb not null default '{}',               -- what evolution_toggle has set
    add column version           bigint not null default 1,                 -- grows with every change
    add column created_by        text references agents (id),               -- the agent that made it; null: an operator
    add column archived_at       timestamptz;
create index agents_by_superior on agents (reports_to);

-- The texts that say who an agent is (SOUL.md), all versions of them; the
-- newest one holds.
create table agent_souls (
    agent_id   text not null references agents (id),
    version    integer not null check (version > 0),
    content    text not null,
    note       text not null default '',           -- why, or which version came back
    written_by text not null,
    written_at timestamptz not null default now(),
    primary key (agent_id, version)
);

-- An agent and those that report to it, directly or through others. union, not
-- union all: a circle, which only hand-written SQL can make, must end.
-- +goose StatementBegin
create function agents_under(top text) returns setof text language sql stable as $$
    with recursive below (id) as (
        select a.id from agents a where a.id = top
        union
        select a.id from agents a join below b on a.reports_to = b.id
    )
    select id from below
$$;
-- +goose StatementEnd
