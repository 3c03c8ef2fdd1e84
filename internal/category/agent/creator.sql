select m.allowed_tools, m.budget_cents, m.ephemeral, (select count(*) from agents a where a.created_by = m.id and a.state <> 'archived') as made
from agents m
where m.id = @agent
