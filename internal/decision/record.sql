insert into decisions (id, agent_id, question, options, expires_at)
values (@id, @agent, @question, @options::jsonb, clock_timestamp() + @life * interval '1 second')
on conflict (id) do nothing
