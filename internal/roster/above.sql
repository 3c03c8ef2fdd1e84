-- all agents: the named one and its superiors; union ends a circle.
with recursive above (id) as (
    select id from agents where id = @agent_id
    union
    select b.id from above x join agents a on a.id = x.id join agents b on b.id = a.reports_to
)
select id from above
