select agent_id, url, database, login, secret, secret_kind, companies, lang, timezone,
       allowed_models, denied_models, denied_fields, allowed_actions, set_at,
       found_at, found_version, found_major, found_door, found_uid, found_lang, found_timezone, found_edition, found_modules
from odoo_connections
where agent_id = @agent
