with old as (
    delete from odoo_files where agent_id = @agent and created_at < @purge
)
insert into odoo_files (id, agent_id, name, media_type, content, created_at)
values (@id, @agent, @name, 'application/pdf', @content, @now)
