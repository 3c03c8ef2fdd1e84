-- all agents: fields belong to a user of Odoo, who is part of the key
delete from odoo_fields
where url = @url and database = @database and version = @version and uid = @uid and model = @model
