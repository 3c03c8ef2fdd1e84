-- Only under the hold that this call has: another may have taken it over.
update outbox_parts p set state = 'sending', tries = p.tries + 1, first_try = coalesce(p.first_try, @now)
from outbox o
where p.outbox_id = @id and p.n = @n and o.id = p.outbox_id and o.lease_until = @until
