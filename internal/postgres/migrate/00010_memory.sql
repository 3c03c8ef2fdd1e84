-- +goose Up
-- What agents remember. A row is never rewritten to say something else: a
-- correction is a new row that supersedes the old one.

create table memories (
    n              integer generated always as identity primary key, -- how memory_terms names the row
    agent_id       text not null references agents (id),
    id             text not null,                   -- what callers name it by: m_…, sortable by age
    content        text not null,
    digest         bytea not null,                  -- SHA-256 of the folded content: equal for what says the same in the same words
    layer          text not null default 'episodic' check (layer in ('episodic', 'semantic', 'procedural')),
    importance     real not null default 5 check (importance between 1 and 10),
    tags           text[] not null default '{}',
    marks          text[] not null default '{}',    -- what it is besides: success, failure, open, decision
    created_at     timestamptz not null default now(),
    follows        integer,                         -- the agent's memory stored just before it, in the same stretch of work
    same_as        integer,                         -- the first memory that says the same in nearly the same words
    times_stored   integer not null default 1,      -- the same content again adds here, not a row
    last_stored_at timestamptz not null default now(),

    -- Where it comes from, and how far that is trusted.
    origin         text not null default 'agent_derived',
    origin_trust   real not null default 0.6 check (origin_trust between 0 and 1),
    derived_from   text[] not null default '{}',    -- ids
    source_event   text not null default '',

    -- A fact: what holds of a subject, from when until before when.
    subject        text,
    predicate      text,
    object         text,
    fact           text,                            -- subject and predicate, folded: which facts replace one another
    valid_from     timestamptz,
    valid_until    timestamptz,                     -- null: still
    supersedes     text,                            -- ids
    superseded_by  text,

    -- Why it no longer counts. Only a live row is found by a search; a retired
    -- one is still part of the history; the others are shown by no tool.
    retired        boolean not null default false,
    quarantined    boolean not null default false,
    invalidated_at timestamptz,
    invalidated_by text,
    live           boolean not null generated always as (not retired and not quarantined and invalidated_at is null) stored,

    -- The terms it is found by, as numbers, and their weights, side by side.
    terms          bigint[] not null,
    weights        smallint[] not null,
    terms_version  smallint not null,               -- the rules that made them

    unique (agent_id, id),
    check ((fact is null) = (subject is null) and (fact is null) = (predicate is null) and (fact is null) = (object is null)
           and (fact is null) = (valid_from is null)),
    check (valid_until >= valid_from)
);
create unique index memories_once on memories (agent_id, digest) where live;
create index memories_by_time on memories (agent_id, created_at desc, n desc) where live;
create index memories_by_fact on memories (agent_id, fact, valid_from) where fact is not null;
create index memories_by_origin on memories (agent_id, origin, created_at);
create index memories_by_first on memories (same_as) where same_as is not null;
create index memories_by_source on memories using gin (derived_from) where derived_from <> '{}';

-- Another name for the same thing. Every alias leads to its canonical name in
-- one step: there are no chains.
create table memory_aliases (
    agent_id   text not null references agents (id),
    alias      text not null,                       -- folded
    canonical  text not null,                       -- folded
    created_at timestamptz not null default now(),
    primary key (agent_id, alias),
    check (alias <> canonical)
);
create index memory_aliases_by_canonical on memory_aliases (agent_id, canonical);

-- Limits of one agent that differ from the usual ones.
create table memory_limits (
    agent_id     text primary key references agents (id),
    max_memories integer,
    max_per_day  integer
);

-- The latest consolidation of each agent's memories.
create table memory_consolidations (
    agent_id text primary key references agents (id),
    ran_at   timestamptz not null,
    retired  integer not null,                      -- facts that ran out
    archived integer not null,                      -- memories that faded
    linked   integer not null,                      -- memories found to say the same
    reindexed integer not null                      -- memories indexed by older rules
);

-- The inverted index: one row for each term of each live memory. A term's
-- number is a hash of the agent and the term, so the postings of one agent lie
-- together, apart from every other's. The index hands out a term's memories
-- heaviest first, then newest, and a search reads only the top of each list:
-- its cost does not grow with the number of memories.
create table memory_terms (
    term   bigint not null,
    memory integer not null,
    weight smallint not null
);
create index memory_terms_by_weight on memory_terms (term, weight desc, memory desc);
-- One memory in 64, to estimate how common a term is without counting it.
create index memory_terms_sample on memory_terms (term) where memory % 64 = 0;

-- What a memory means, where a model for embeddings is configured. The code is
-- the sign of each dimension: the memories whose codes differ least from a
-- query's are compared by their vectors. The long vectors lie apart, so that a
-- scan over the codes reads little.
create table memory_vectors (
    memory   integer primary key references memories (n) on delete cascade,
    agent_id text not null references agents (id),
    model    text not null,
    code     bit varying not null,
    vector   real[] not null
) with (toast_tuple_target = 128);
alter table memory_vectors alter column vector set storage external;
create index memory_vectors_by_agent on memory_vectors (agent_id, model);

-- The triggers keep the two tables in step whatever statement changes a
-- memory, so that no code path can forget what must not be found any more.
-- +goose StatementBegin
create function memory_terms_follow() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.live then
        delete from memory_terms p
        using unnest(old.terms, old.weights) as t (term, weight)
        where p.term = t.term and p.weight = t.weight and p.memory = old.n;
    end if;
    if tg_op <> 'DELETE' and new.live then
        insert into memory_terms (term, memory, weight)
        select t.term, new.n, t.weight from unnest(new.terms, new.weights) as t (term, weight);
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger memories_inserted after insert or delete on memories
    for each row execute function memory_terms_follow();
create trigger memories_updated after update on memories
    for each row when (old.live is distinct from new.live or old.terms is distinct from new.terms or old.weights is distinct from new.weights)
    execute function memory_terms_follow();
