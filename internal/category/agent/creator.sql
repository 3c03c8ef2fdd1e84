select m.allowed_tools, m.ephemeral, (select count(*) from agents a where a.created_by = m.id and a.state <> 'archived') as made
from agents m
where m.id = @agent
