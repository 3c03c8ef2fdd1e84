-- +goose Up
-- The latest memories of a layer are found without passing by all the others.

create index memories_by_layer on memories (agent_id, layer, created_at desc, n desc) where live;
