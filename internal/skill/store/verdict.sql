update skill_versions
set risk = @risk, passed = @passed, findings = @findings::jsonb, omitted = @omitted, scanner = @scanner, scanned_at = now()
where skill_id = @id and version = @version
