select agent_id, channel, subject, case when state = 'invited' and expires_at <= @now::timestamptz then 'expired' else state end as state,
       expires_at, changed_by, changed_at
from pairings
where (@agent_id = '' or agent_id = @agent_id) and (@channel = '' or channel = @channel) and (@subject = '' or subject = @subject)
order by changed_at desc, agent_id, channel, subject
limit 500
