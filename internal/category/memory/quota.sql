select coalesce(l.max_per_day, @max_per_day::integer) as max_per_day,
       coalesce(l.max_memories, @max_memories::integer) as max_memories,
       (select count(*) from (select from memories
                              where agent_id = @agent and live and created_at >= @since
                              limit coalesce(l.max_per_day, @max_per_day::integer)) today) as day,
       (select count(*) from (select from memory_terms
                              where term = @any and memory % 64 = 0
                              limit coalesce(l.max_memories, @max_memories::integer) / @rate::integer + 1) sample) as sampled
from (select @agent::text as agent_id) a
left join memory_limits l using (agent_id)
