select canonical, alias, (select count(*) from memory_aliases where agent_id = @agent) as total
from memory_aliases
where agent_id = @agent and alias > @after
order by alias
limit @limit
