select person_id, channel || ':' || external_id as account
from person_handles
where channel || ':' || external_id = any (@accounts::text[]) and person_id <> @id
limit 1
