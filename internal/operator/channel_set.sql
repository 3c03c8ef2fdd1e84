insert into channels as c (agent_id, channel, base_url, account, secret, second_secret, set_by, set_at)
values (@agent_id, @channel, @base_url, @account, @secret, @second_secret, @by, @now)
on conflict (agent_id, channel) do update set
    base_url = excluded.base_url, account = excluded.account, secret = excluded.secret, second_secret = excluded.second_secret,
    set_by = excluded.set_by, set_at = excluded.set_at, works_since = null, last_error = '', last_error_at = null
