-- +goose Up
-- What closed a fact or superseded a memory may be taken back later: then what
-- was there before holds again, to the end that it was said to have.

alter table memories add column said_until timestamptz; -- of a closed fact: when it was said to end, if it was
create index memories_by_superseder on memories (agent_id, superseded_by) where superseded_by is not null;
