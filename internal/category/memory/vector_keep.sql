insert into memory_vectors (memory, agent_id, model, code, vector)
select n, agent_id, @model, (@code::text)::bit varying, @vector
from memories
where agent_id = @agent and id = @id
on conflict (memory) do update set model = excluded.model, code = excluded.code, vector = excluded.vector
