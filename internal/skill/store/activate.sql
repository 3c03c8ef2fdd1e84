update skills
set version = @version, updated_at = @now, state = case when state in ('stale', 'archived') then 'active' else state end
where id = @id
