insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message, prompt, scopes, narrowed_by, created_at)
values (@id, @agent, @due_at, @mode, @channel, @chat_id, @message, @prompt, @scopes,
        coalesce((select w.narrowed_by from work w where w.id = @run::uuid), '{}'), @now)
