-- +goose Up
-- Answers of another model than the one that was asked for are few: counted by
-- themselves, a year of an agent's rows need not be read for them.
create index if not exists usage_fallbacks on usage (agent_id, at) where asked_model <> '' and asked_model <> model;
