-- all agents: for an operator.
insert into memory_limits (agent_id, max_memories, max_per_day)
values (@agent_id, nullif(@max_memories::integer, 0), nullif(@max_per_day::integer, 0))
on conflict (agent_id) do update set
    max_memories = coalesce(excluded.max_memories, memory_limits.max_memories),
    max_per_day  = coalesce(excluded.max_per_day, memory_limits.max_per_day)
