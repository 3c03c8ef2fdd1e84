with part as (
    update outbox_parts set state = @state, message_id = @message_id, code = @code,
        first_try = case when @state in ('pending', 'refused') then null else first_try end
    where outbox_id = @id and n = @n and (state <> 'sent' or @state = 'sent')
)
update outbox set updated_at = @now where id = @id
