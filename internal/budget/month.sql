insert into budgets as b (id, agent_id, period, limit_micros, hard, set_by)
values (@id, @agent, 'month', @limit, @hard, @by)
on conflict (agent_id, user_id, tool, period) do update set limit_micros = excluded.limit_micros, set_by = excluded.set_by, set_at = now()
returning b.id
