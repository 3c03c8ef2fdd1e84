-- all agents: for an operator. What waits for a person, or was decided, about
-- one tool: the newest grant, or the newest approval of the very same call.
select id, kind, state
from approvals
where agent_id = @agent_id and tool = @tool and expires_at > clock_timestamp() and state in ('pending', 'approved')
  and (kind = 'grant' or definition = decode(@definition, 'hex') and arguments_hash = @hash)
order by kind = @kind desc, created_at desc
limit 1
