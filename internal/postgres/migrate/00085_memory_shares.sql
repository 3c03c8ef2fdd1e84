-- +goose Up
-- Who may read another agent's memories. Only an operator writes here, and
-- every such command is on the audit trail; nothing else lets one agent see
-- what another remembers.

create table memory_shares (
    owner_id   text not null references agents (id), -- whose memories
    agent_id   text not null references agents (id), -- who may read them
    tags       text[] not null default '{}',         -- only memories with one of these; none: all
    granted_by text not null,
    granted_at timestamptz not null,
    until      timestamptz,                          -- null: until it is taken back
    primary key (owner_id, agent_id),
    check (owner_id <> agent_id)
);
create index memory_shares_by_agent on memory_shares (agent_id);
