-- all agents: fields belong to a user of Odoo, who is part of the key
insert into odoo_fields (url, database, version, uid, lang, model, fields, fetched_at)
values (@url, @database, @version, @uid, @lang, @model, @fields, @now)
on conflict (url, database, version, uid, lang, model) do update set fields = excluded.fields, fetched_at = excluded.fetched_at
