select m.n, m.id, left(m.content, @length) as content
from memories m
left join memory_vectors v on v.memory = m.n
where m.agent_id = @agent and m.live and m.n > @after and v.model is distinct from @model
order by m.n
limit @limit
