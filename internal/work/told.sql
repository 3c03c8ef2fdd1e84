-- all agents: what SQS was told of, by id. Of marks that this request set and
-- nobody else has set or taken back since, those of @refused go.
update work w set telling_until = null, sent_at = case when w.id = any(@refused::uuid[]) then null else w.sent_at end
from unnest(@ids::uuid[], @marks::timestamptz[]) as m (id, mark)
where w.id = m.id and w.sent_at = m.mark and w.finished_at is null
