-- updated_at stays that of the last part: a repetition does not make a message
-- one that was just sent.
update outbox set lease_until = @now,
    done = not exists (select from outbox_parts p where p.outbox_id = outbox.id and p.state <> 'sent')
where id = @id and lease_until = @until
