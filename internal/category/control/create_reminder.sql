insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message, prompt, scopes, created_at)
values (@id, @agent, @due_at, @mode, @channel, @chat_id, @message, @prompt, @scopes, @now)
