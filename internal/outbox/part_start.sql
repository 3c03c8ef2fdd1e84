update outbox_parts set state = 'sending', tries = tries + 1, first_try = coalesce(first_try, @now) where outbox_id = @id and n = @n
