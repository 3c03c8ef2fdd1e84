insert into skill_versions (skill_id, version, description, license, compatibility, allowed_tools, metadata, tags, body, digest, bytes,
                            hub, repo, path, commit, created_by, created_at,
                            risk, passed, findings, omitted, scanner, scanned_at, accepted_by, head_terms, body_terms)
values (@id, @version, @description, @license, @compatibility, @tools, @metadata::jsonb, @tags, @body, @digest, @bytes,
        @hub, @repo, @path, @commit, @by, @now,
        @risk, @passed, @findings::jsonb, @omitted, @scanner, @now, @accepted, @head_terms, @body_terms)
