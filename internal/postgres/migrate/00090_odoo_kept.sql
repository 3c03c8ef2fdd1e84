-- +goose Up
-- What an action was called with belongs to its record, and a document is
-- found again by what it is of.

alter table odoo_writes add column args jsonb not null default '{}';
create index odoo_writes_by_age on odoo_writes (started_at);

alter table odoo_files add column report text not null default '';
alter table odoo_files add column record bigint not null default 0;
create index odoo_files_by_agent on odoo_files (agent_id, report, record, created_at desc);
