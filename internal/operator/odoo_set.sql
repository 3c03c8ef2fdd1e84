insert into odoo_connections as c (agent_id, url, database, login, secret, secret_kind, companies, lang, timezone,
    allowed_models, denied_models, denied_fields, allowed_actions, set_by, set_at)
values (@agent_id, @url, @database, @login, @secret, @secret_kind, @companies, @lang, @timezone,
    @allowed_models, @denied_models, @denied_fields, @allowed_actions, @by, @now)
on conflict (agent_id) do update set
    url = excluded.url, database = excluded.database, login = excluded.login, secret = excluded.secret, secret_kind = excluded.secret_kind,
    companies = excluded.companies, lang = excluded.lang, timezone = excluded.timezone,
    allowed_models = excluded.allowed_models, denied_models = excluded.denied_models, denied_fields = excluded.denied_fields,
    allowed_actions = excluded.allowed_actions, set_by = excluded.set_by, set_at = excluded.set_at,
    found_at = null, found_version = '', found_major = 0, found_door = '', found_uid = 0, found_lang = '', found_timezone = '',
    found_edition = '', found_modules = '{}'
