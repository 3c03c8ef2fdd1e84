-- all agents: an override may name any agent that exists
select exists (select from agents where id = @id) as known
