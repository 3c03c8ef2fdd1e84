-- all agents: for an operator.
insert into memory_shares (owner_id, agent_id, tags, granted_by, granted_at, until)
values (@owner_id, @agent_id, @tags, @by, @now, @until)
on conflict (owner_id, agent_id) do update set
    tags = excluded.tags, granted_by = excluded.granted_by, granted_at = excluded.granted_at, until = excluded.until
