select n, key::text as key, kind, body, markup, plain, state, first_try, message_id from outbox_parts where outbox_id = @id order by n
