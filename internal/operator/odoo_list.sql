select agent_id, url, database, login, secret_kind, companies, allowed_models, denied_models, denied_fields, allowed_actions,
       found_version as version, found_edition as edition, found_at as tested_at, set_by, set_at
from odoo_connections
where @agent_id::text = '' or agent_id = @agent_id
order by agent_id
