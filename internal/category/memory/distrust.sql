with recursive wrong as (
    select id from memories
    where agent_id = @agent and origin = @origin and created_at >= @since and invalidated_at is null
    union
    select m.id from wrong w join memories m on m.derived_from @> array[w.id]
    where m.agent_id = @agent and m.derived_from <> '{}'
)
update memories set origin_trust = least(origin_trust, @trust::real)
where agent_id = @agent and id in (select id from wrong)
  and not (origin = @origin and created_at >= @since) and invalidated_at is null
