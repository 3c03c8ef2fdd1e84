select version, octet_length(content) as bytes, written_by, written_at, note
from agent_souls
where agent_id = @agent_id
order by version desc
