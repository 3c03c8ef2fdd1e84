update skill_versions
set risk = @risk, passed = @passed, findings = @findings::jsonb, omitted = @omitted, scanner = @scanner, scanned_at = now(),
    accepted_by = coalesce(nullif(@accepted, ''), accepted_by)
where skill_id = @id and version = @version
