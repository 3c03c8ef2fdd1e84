update agents a
set state = 'active', archived_at = null, updated_at = @now, version = version + 1
where a.id = @agent_id
returning a.id as agent_id, a.state,
          (select count(*) from api_keys k where k.agent_id = a.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > @now)) as keys,
          (select count(*) from oauth_subjects o where o.agent_id = a.id) as subjects
