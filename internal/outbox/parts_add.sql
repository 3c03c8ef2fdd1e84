insert into outbox_parts (outbox_id, n, key, kind, body, markup, plain)
select @id, p.n, p.key, p.kind, p.body, p.markup, p.plain
from unnest(@ns::integer[], @keys::uuid[], @kinds::text[], @bodies::text[], @markups::boolean[], @plains::text[])
    as p (n, key, kind, body, markup, plain)
