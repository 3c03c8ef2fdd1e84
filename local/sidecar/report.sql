-- all agents: what a host says of itself belongs to none.
insert into sidecars (id, categories, report, reported_at)
values (@id, @categories, @report, now())
on conflict (id) do update
set categories = excluded.categories, report = excluded.report, reported_at = excluded.reported_at
