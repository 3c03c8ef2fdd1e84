-- +goose Up
-- Until when somebody is telling SQS of the item. Whoever dies meanwhile leaves it
-- to the next one soon, and not after the hour that a message is waited for.
alter table work add column telling_until timestamptz;
