-- all agents: a stop may cover everyone.
select exists (select from stops where resumed_at is null and (agent_id is null or agent_id = $1)) as stopped
