select canonical, alias from memory_aliases
where agent_id = @agent
order by alias
