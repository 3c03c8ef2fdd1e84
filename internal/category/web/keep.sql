insert into web_pages (agent_id, key, url, status, content_type, etag, last_modified, body, truncated, fetched_at, checked_at)
select id, @key, @url, @status, @content_type, @etag, @last_modified, @body, @truncated, @now, @now
from agents
where id = @agent -- gone meanwhile: then there is nobody to keep it for
on conflict (agent_id, key) do update
set url = excluded.url, status = excluded.status, content_type = excluded.content_type, etag = excluded.etag,
    last_modified = excluded.last_modified, body = excluded.body, truncated = excluded.truncated,
    fetched_at = excluded.fetched_at, checked_at = excluded.checked_at
