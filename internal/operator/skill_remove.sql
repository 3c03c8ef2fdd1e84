delete from skills
where scope = @scope and coalesce(agent_id, '') = @agent and name = @name
returning id as skill_id
