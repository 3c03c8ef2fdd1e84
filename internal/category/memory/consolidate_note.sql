insert into memory_consolidations (agent_id, ran_at, retired, archived, linked, reindexed)
values (@agent, @now, @retired, @archived, @linked, @reindexed)
on conflict (agent_id) do update set
    ran_at = excluded.ran_at, retired = excluded.retired, archived = excluded.archived,
    linked = excluded.linked, reindexed = excluded.reindexed
