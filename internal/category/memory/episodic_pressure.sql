select coalesce(sum(importance), 0)::float8 as importance, count(*) as episodes
from memories
where agent_id = @agent and live and layer = 'episodic' and created_at >= @since
