insert into pairings (agent_id, channel, subject, state, code, salt, expires_at, wrong, changed_by, changed_at)
values (@agent_id, @channel, @subject, @state, @code, @salt, @expires_at, @wrong, @by, @at)
on conflict (agent_id, channel, subject) do update
set state = excluded.state, code = excluded.code, salt = excluded.salt, expires_at = excluded.expires_at, wrong = excluded.wrong,
    changed_by = excluded.changed_by, changed_at = excluded.changed_at
