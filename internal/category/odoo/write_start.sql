insert into odoo_writes (id, agent_id, request_id, url, database, login, model, method, record_ids, before, values, args, state, started_at)
values (@id, @agent, @request, @url, @database, @login, @model, @method, @ids, @before, @values, @args, 'started', @now)
