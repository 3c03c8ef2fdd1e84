with person as (
    insert into people (id, display_name, roles, project_ids, updated_at)
    values (@id, @display_name, @roles::text[], @project_ids::text[], @now)
    on conflict (id) do update set display_name = excluded.display_name, roles = excluded.roles, project_ids = excluded.project_ids, updated_at = excluded.updated_at
), gone as (
    delete from person_handles where person_id = @id and channel || ':' || external_id <> all (@accounts::text[])
)
insert into person_handles (channel, external_id, person_id)
select split_part(a, ':', 1), substr(a, strpos(a, ':') + 1), @id from unnest(@accounts::text[]) a
on conflict do nothing
