select id as decision_id, question, options, created_at, expires_at
from decisions
where agent_id = @agent and state = 'open' and expires_at > clock_timestamp()
order by created_at desc, id
limit @limit
