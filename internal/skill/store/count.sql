select count(*) as skills
from skills
where scope = @scope and coalesce(agent_id, '') = @agent and (@scope <> 'shared' or created_by = @by)
