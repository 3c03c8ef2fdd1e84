select a.id, m.content, m.tags, m.layer, m.importance, m.origin, m.origin_trust,
       m.created_at, m.times_stored, m.last_stored_at
from (select id, min(place) as place
      from unnest(@ids::text[]) with ordinality as asked (id, place)
      group by id) a
join memories m on m.agent_id = @agent and m.live and m.id = a.id
order by a.place
