select n, content, tags, marks, coalesce(subject, '') as subject, coalesce(predicate, '') as predicate, coalesce(object, '') as object
from memories
where agent_id = @agent and terms_version <> @version
order by n
limit @limit
