-- all agents: fields belong to a user of Odoo, who is part of the key
select fields, fetched_at
from odoo_fields
where url = @url and database = @database and version = @version and uid = @uid and lang = @lang and model = @model
  and fetched_at > @since
