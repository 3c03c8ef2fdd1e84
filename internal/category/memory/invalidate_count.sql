with recursive wrong as (
    select id from memories
    where agent_id = @agent and origin = @origin and created_at >= @since and invalidated_at is null
    union
    select m.id from wrong w join memories m on m.derived_from @> array[w.id]
    where m.agent_id = @agent and m.derived_from <> '{}'
)
select count(*) filter (where m.origin = @origin and m.created_at >= @since) as invalidated,
       count(*) filter (where not (m.origin = @origin and m.created_at >= @since)) as distrusted
from memories m
where m.agent_id = @agent and m.id in (select id from wrong) and m.invalidated_at is null
