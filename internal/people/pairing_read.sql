select agent_id, channel, subject, state, code, salt, expires_at, wrong, changed_by, changed_at
from pairings
where agent_id = @agent_id and channel = @channel and subject = @subject
