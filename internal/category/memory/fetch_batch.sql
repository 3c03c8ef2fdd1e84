select m.id, content, tags, layer, importance, origin, origin_trust, derived_from, created_at, times_stored, last_stored_at,
       coalesce(subject, '') as subject, coalesce(predicate, '') as predicate, coalesce(object, '') as object,
       valid_from, valid_until, coalesce(supersedes, '') as supersedes, coalesce(superseded_by, '') as superseded_by
from (select id, min(place) as place
      from unnest(@ids::text[]) with ordinality as asked (id, place)
      group by id) a
join memories m on m.agent_id = @agent and not m.quarantined and m.invalidated_at is null and m.id = a.id
    and (@shared::bigint[] = '{}' or m.terms && @shared)
order by a.place
