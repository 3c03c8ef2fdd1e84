-- all agents: for an operator.
insert into api_keys (id, agent_id, name, hint, hash, scopes, created_at, expires_at)
values (@id, @agent_id, @name, @hint, @hash, @scopes, @now, @expires_at)
