update web_pages
set checked_at = @now
where agent_id = @agent and key = @key
