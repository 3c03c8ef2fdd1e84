select count(*) as missing
from memories m
left join memory_vectors v on v.memory = m.n
where m.agent_id = @agent and m.live and v.model is distinct from @model
