-- +goose Up
-- Skills: folders of instructions, scripts and references that agents work by.
-- A version is never rewritten; what is thought of its safety is.

create table skills (
    id           text primary key,                  -- s_…, sortable by age
    scope        text not null check (scope in ('agent', 'shared', 'global')),
    agent_id     text references agents (id) on delete cascade, -- whose it is; null: nobody's own
    name         text not null,
    lineage      text not null,                     -- where it comes from; nothing of another lineage takes its place
    state        text not null default 'active' check (state in ('draft', 'active', 'stale', 'archived')),
    pinned       boolean not null default false,    -- neither updated nor put away
    version      integer not null,                  -- the one in use
    created_by   text not null,
    created_at   timestamptz not null,
    updated_at   timestamptz not null,
    uses         bigint not null default 0,
    last_used_at timestamptz,
    check ((scope = 'agent') = (agent_id is not null))
);
create unique index skills_by_name on skills (scope, coalesce(agent_id, ''), name);

create table skill_versions (
    skill_id      text not null references skills (id) on delete cascade,
    version       integer not null,
    description   text not null,
    license       text not null default '',
    compatibility text not null default '',
    allowed_tools text[] not null default '{}',
    metadata      jsonb not null default '{}',
    tags          text[] not null default '{}',
    body          text not null,
    digest        bytea not null,                   -- SHA-256 over paths, contents and execute bits
    bytes         integer not null,
    hub           text not null default '',         -- where it was installed from
    repo          text not null default '',
    path          text not null default '',
    commit        text not null default '',
    created_by    text not null,
    created_at    timestamptz not null,
    -- What the scan of these bytes said, by which rules, and who took the risk
    -- all the same.
    risk          text not null,
    passed        boolean not null,
    findings      jsonb not null,
    omitted       integer not null default 0,
    scanner       integer not null,
    scanned_at    timestamptz not null,
    accepted_by   text not null default '',
    -- What a search finds it by (package terms).
    head_terms    text[] not null,                  -- of name, tags and description
    body_terms    text[] not null,
    primary key (skill_id, version)
);
create index skill_versions_head on skill_versions using gin (head_terms);
create index skill_versions_body on skill_versions using gin (body_terms);

create table skill_files (
    skill_id   text not null,
    version    integer not null,
    path       text not null,
    content    bytea not null check (octet_length(content) <= 1048576),
    sha256     bytea not null,
    executable boolean not null default false,
    primary key (skill_id, version, path),
    foreign key (skill_id, version) references skill_versions (skill_id, version) on delete cascade
);

-- Which agents took a shared skill, once each.
create table skill_adoptions (
    skill_id   text not null references skills (id) on delete cascade,
    agent_id   text not null references agents (id) on delete cascade,
    adopted_as text not null,
    adopted_at timestamptz not null,
    primary key (skill_id, agent_id)
);

-- How working by a skill went.
create table skill_feedback (
    id            bigint generated always as identity primary key,
    skill_id      text not null references skills (id) on delete cascade,
    version       integer not null,
    section_id    text not null default '',
    agent_id      text not null,
    credential_id text not null,
    success       boolean not null,
    note          text not null default '',
    created_at    timestamptz not null
);
create index skill_feedback_by_skill on skill_feedback (skill_id, version);

-- The parts of skills, cut at their headings.
create table skill_sections (
    id       text primary key,                      -- b_…
    skill_id text not null references skills (id) on delete cascade,
    version  integer not null,
    position integer not null,
    heading  text not null,
    content  text not null,
    terms    text[] not null,
    unique (skill_id, version, position)
);
create index skill_sections_terms on skill_sections using gin (terms);

-- What agents looked for and no skill of theirs answered.
create table skill_misses (
    agent_id text not null references agents (id) on delete cascade,
    key      text not null,                         -- the words that carry the query
    query    text not null,                         -- as it was last asked
    times    integer not null default 1,
    last_at  timestamptz not null,
    primary key (agent_id, key)
);

-- Runs that wrote skills from what agents did.
create table skill_runs (
    id            text primary key,                 -- r_…
    agent_id      text not null references agents (id) on delete cascade,
    started_at    timestamptz not null,
    ended_at      timestamptz,                      -- null: it broke off
    lookback_days integer not null,
    model         text not null default '',
    outcomes      jsonb not null default '[]'       -- [{"candidate_id", "skill_id", "name", "state", "detail"}]
);
create index skill_runs_by_agent on skill_runs (agent_id, started_at desc);

-- Which stretches of work a skill was written from, so that none is twice.
create table skill_candidates (
    agent_id     text not null references agents (id) on delete cascade,
    candidate_id text not null,
    skill_id     text not null references skills (id) on delete cascade,
    made_at      timestamptz not null,
    primary key (agent_id, candidate_id)
);

-- What a hub had when it was last looked at.
create table skill_hubs (
    hub        text primary key,                    -- a name, or github:owner/repo
    commit     text not null,
    skills     jsonb not null,                      -- [{"name", "path", "description", "blob"}]
    fetched_at timestamptz not null
);
