select c.agent_id, c.channel, c.base_url, c.account, c.works_since, c.last_sent_at, c.last_error, c.set_by, c.set_at,
    array(select case when t.name = '' then t.target else t.name || '=' || t.target end
          from channel_targets t where t.agent_id = c.agent_id and t.channel = c.channel order by t.name, t.target) as chats
from channels c
where @agent_id = '' or c.agent_id = @agent_id
order by c.agent_id, c.channel
