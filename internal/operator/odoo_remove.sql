delete from odoo_connections where agent_id = @agent_id
