-- all agents: the mode belongs to the installation.
insert into inference_settings (mode, set_by, set_at)
values (@mode, @by, @now)
on conflict (id) do update
set mode = excluded.mode, set_by = excluded.set_by, set_at = excluded.set_at
returning mode, set_by, set_at
