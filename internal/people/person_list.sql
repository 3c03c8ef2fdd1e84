select p.id as person_id, p.display_name, p.roles, p.project_ids,
       array(select h.channel || ':' || h.external_id from person_handles h where h.person_id = p.id order by 1) as accounts, p.updated_at
from people p
where @id = '' or p.id = @id
order by p.id
limit 5000
