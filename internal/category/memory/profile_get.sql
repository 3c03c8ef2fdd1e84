select distinct on (fact) id, subject, predicate, object, origin_trust
from memories
where agent_id = @agent and live and fact is not null
  and fact like 'user:%'
  and (@subject::text = '' or split_part(fact, E'\x1f', 1) = @subject)
  and valid_from <= @now and (valid_until is null or valid_until > @now)
order by fact, valid_from desc, n desc
limit @limit
