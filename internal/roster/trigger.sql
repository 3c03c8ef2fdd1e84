select exists (select from agents where id <> @agent_id and state <> 'archived' and lower(trigger) = lower(@trigger)) as taken
