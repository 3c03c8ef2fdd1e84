-- all agents: for an operator.
with before as (select agent_id from oauth_subjects where issuer = @issuer and subject = @subject)
insert into oauth_subjects as o (issuer, subject, agent_id, scopes)
values (@issuer, @subject, @agent_id, @scopes)
on conflict (issuer, subject) do update set agent_id = excluded.agent_id, scopes = excluded.scopes
returning issuer, subject, agent_id, scopes, coalesce((select b.agent_id from before b), '') as before
