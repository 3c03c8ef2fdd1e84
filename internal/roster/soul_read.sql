select version, content, note, written_by, written_at
from agent_souls
where agent_id = @agent_id and (@version::integer = 0 or version = @version::integer)
order by version desc
limit 1
