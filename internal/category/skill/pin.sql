-- all agents: the skill is one that the caller may change
update skills s
set pinned = @pinned, version = @version, updated_at = @now,
    state = case when @pinned::boolean and s.state in ('stale', 'archived') then 'active' else s.state end
where s.id = @id and exists (select from skill_versions v where v.skill_id = s.id and v.version = @version)
returning s.id as skill_id, s.name as skill_name, s.pinned, s.version, s.state
