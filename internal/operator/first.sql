-- all agents: the first one.
insert into agents (id, display_name, role, allowed_tools, created_at, updated_at)
values (@agent_id, 'Default', 'main', '{*}', @now, @now)
on conflict (id) do nothing
