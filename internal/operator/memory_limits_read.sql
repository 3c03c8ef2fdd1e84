-- all agents: for an operator.
select coalesce(max(max_memories), @max_memories::integer) as max_memories,
       coalesce(max(max_per_day), @max_per_day::integer) as max_per_day
from memory_limits
where agent_id = @agent_id
