-- all agents: upkeep
with files as (
    delete from odoo_files where created_at < @now::timestamptz - interval '7 days' returning 1
), writes as (
    delete from odoo_writes where started_at < @now::timestamptz - interval '400 days' returning 1
), old as (
    delete from odoo_fields where fetched_at < @now::timestamptz - interval '1 day'
)
select (select count(*) from files) as files, (select count(*) from writes) as writes
