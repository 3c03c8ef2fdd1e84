update skills
set uses = uses + 1, last_used_at = greatest(last_used_at, @now), state = case when state = 'stale' then 'active' else state end
where id = @id
