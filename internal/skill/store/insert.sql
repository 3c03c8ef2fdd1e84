insert into skills (id, scope, agent_id, name, lineage, state, version, created_by, created_at, updated_at)
values (@id, @scope, nullif(@agent, ''), @name, @lineage, @state, 1, @by, @now, @now)
