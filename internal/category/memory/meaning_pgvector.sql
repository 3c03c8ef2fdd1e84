-- pgvector: needs that extension, and is used only where it is
select near.memory, 1 - (near.vector::vector <=> @vector::real[]::vector) as cosine
from (select v.memory, v.vector
      from memory_vectors v
      join memories m on m.n = v.memory
      where v.agent_id = @agent and v.model = @model and m.agent_id = @agent and m.live
        and length(v.code) = length(@code::text)
        and (m.valid_until is null or m.valid_until > @now)
        and (@layer::text = '' or m.layer = @layer)
        and (@shared::bigint[] = '{}' or m.terms && @shared)
        and (@tags::bigint[] = '{}' or m.terms && @tags)
        and m.created_at >= @since and m.created_at < @until
      order by bit_count(v.code # (@code::text)::bit varying), v.memory desc
      limit @compared) near
order by near.vector::vector <=> @vector::real[]::vector, near.memory desc
limit @limit
