delete from web_pages
where agent_id = @agent and key = @key
