update outbox set lease_until = @now, updated_at = @now,
    done = not exists (select from outbox_parts p where p.outbox_id = outbox.id and p.state <> 'sent')
where id = @id
