select url, status, content_type, etag, last_modified, body, truncated, fetched_at, checked_at
from web_pages
where agent_id = @agent and key = @key and checked_at >= @oldest
