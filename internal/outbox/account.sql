select channel, base_url, account, secret, second_secret, works_since, last_sent_at, last_error, last_error_at, set_at
from channels
where agent_id = @agent and (@channel = '' or channel = @channel)
order by channel
