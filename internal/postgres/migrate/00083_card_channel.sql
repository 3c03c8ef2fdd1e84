-- +goose Up
-- A card may also go through the channel of another agent, as
-- agent/channel:destination.
alter table agents drop constraint agents_approval_card_check;
alter table agents add constraint agents_approval_card_check check (approval_card = '' or approval_card ~ '^([a-z0-9][a-z0-9_-]{0,63}/)?[a-z]+:.+$');
