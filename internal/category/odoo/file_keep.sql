insert into odoo_files (id, agent_id, report, record, name, media_type, content, created_at)
values (@id, @agent, @report, @record, @name, 'application/pdf', @content, @now)
