select n, id, object, valid_from, valid_until, coalesce(superseded_by, '') as superseded_by
from memories
where agent_id = @agent and fact = @fact and not quarantined and invalidated_at is null
order by valid_from, n
