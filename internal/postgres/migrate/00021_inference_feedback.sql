-- +goose Up
-- Finds the feedback whose prompts share something with a prompt.
create index inference_feedback_sketch on inference_feedback using gin (sketch);
