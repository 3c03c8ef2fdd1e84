-- +goose Up
-- Where inference runs, and what agents said of its answers.

-- One row: the mode that somebody set. Without it the mode is auto.
create table inference_settings (
    id     boolean primary key default true check (id),
    mode   text not null check (mode in ('auto', 'local', 'remote', 'off')),
    set_by text not null,
    set_at timestamptz not null default now()
);

-- Rewarded answers. A later prompt that resembles one (the sketches overlap)
-- gets its tokens made likelier or less likely.
create table inference_feedback (
    id         bigint generated always as identity primary key,
    agent_id   text not null references agents (id),
    sketch     bigint[] not null,                  -- 128 least hashes of the prompt's 3-grams
    response   text not null,
    reward     smallint not null check (reward in (-1, 1)),
    model      text not null default '',           -- loaded when the feedback was given
    created_at timestamptz not null default now()
);
create index inference_feedback_by_agent on inference_feedback (agent_id, created_at desc);
