-- all agents: an operator sets it for whomever it names.
insert into budgets as b (id, agent_id, user_id, tool, period, zone, limit_micros, warn_percent, hard, unpriced, set_by)
values (@id, @agent, @user, @tool, @period, @zone, @limit, @percent, @hard, @unpriced, @by)
on conflict (agent_id, user_id, tool, period) do update set zone = excluded.zone, limit_micros = excluded.limit_micros,
    warn_percent = excluded.warn_percent, hard = excluded.hard, unpriced = excluded.unpriced, set_by = excluded.set_by, set_at = now()
returning b.id
