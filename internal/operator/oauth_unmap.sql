-- all agents: for an operator.
delete from oauth_subjects
where issuer = @issuer and subject = @subject
returning issuer, subject, agent_id, scopes
