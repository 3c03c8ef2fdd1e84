-- all agents: for an operator.
select issuer, subject, agent_id, scopes
from oauth_subjects
where @agent_id = '' or agent_id = @agent_id
order by agent_id, issuer, subject
limit @limit
