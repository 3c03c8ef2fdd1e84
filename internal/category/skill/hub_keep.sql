-- all agents: what a public hub has is nobody's secret
insert into skill_hubs (hub, commit, skills, fetched_at)
values (@hub, @commit, @skills::jsonb, @now)
on conflict (hub) do update set commit = excluded.commit, skills = excluded.skills, fetched_at = excluded.fetched_at
