-- all agents: the first one.
insert into agents (id, display_name, role, allowed_tools, approver, created_at, updated_at)
values (@agent_id, 'Default', 'main', '{*}', 'client', @now, @now)
on conflict (id) do nothing
