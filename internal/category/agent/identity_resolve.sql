-- all agents: people are the installation's, and whoever may call the tool may ask for any of them.
select p.id as person_id, p.display_name, p.roles, p.project_ids, p.updated_at,
       case when @emails::boolean then coalesce((select array_agg(e.external_id order by e.external_id) from person_handles e where e.person_id = p.id and e.channel = 'email'), '{}') end as emails,
       case when @handles::boolean then coalesce((select jsonb_object_agg(o.channel, o.external_id order by o.external_id desc) from person_handles o where o.person_id = p.id and o.channel <> 'email'), '{}') end as handles
from person_handles h
join people p on p.id = h.person_id
where h.channel = @channel and h.external_id = @external_id
