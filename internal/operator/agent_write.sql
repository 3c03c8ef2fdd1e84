-- all agents: for an operator.
insert into agents as a (id, display_name, role, state, model, reports_to, icon, trigger,
                         allowed_tools, denied_tools, approval_required_tools, scoped_tools, source, created_at, updated_at,
                         approver, approval_life, grant_life, limits, rules, approval_card,
                         fallback_model, api_mode, budget_cents, max_concurrent, heartbeat_enabled, heartbeat_cron)
values (@agent_id, @display_name, @role, @state, @model, nullif(@reports_to, ''), @icon, @trigger,
        @allowed, @denied, @approval, @scoped, @source, @now, @now,
        @approver, @approval_minutes::int * interval '1 minute', @grant_minutes::int * interval '1 minute', @limits::jsonb, @policy::jsonb, @approval_card,
        @fallback_model, @api_mode, @budget_cents, @max_concurrent, @heartbeat_enabled, @heartbeat_cron)
on conflict (id) do update
set display_name = excluded.display_name, role = excluded.role, state = excluded.state, model = excluded.model,
    reports_to = excluded.reports_to, icon = excluded.icon, trigger = excluded.trigger,
    allowed_tools = excluded.allowed_tools, denied_tools = excluded.denied_tools,
    approval_required_tools = excluded.approval_required_tools, scoped_tools = excluded.scoped_tools,
    source = excluded.source, updated_at = excluded.updated_at, approver = excluded.approver,
    approval_life = excluded.approval_life, grant_life = excluded.grant_life, limits = excluded.limits, rules = excluded.rules, approval_card = excluded.approval_card,
    fallback_model = excluded.fallback_model, api_mode = excluded.api_mode, budget_cents = excluded.budget_cents,
    max_concurrent = excluded.max_concurrent, heartbeat_enabled = excluded.heartbeat_enabled, heartbeat_cron = excluded.heartbeat_cron,
    version = a.version + 1, archived_at = case when excluded.state = 'archived' then a.archived_at end
returning id as agent_id, display_name, role, state, model, coalesce(reports_to, '') as reports_to, icon, trigger,
          allowed_tools, denied_tools, approval_required_tools, scoped_tools, source, created_at, updated_at,
          approver, (extract(epoch from approval_life) / 60)::int as approval_minutes, (extract(epoch from grant_life) / 60)::int as grant_minutes,
          limits, rules::text as policy, evolution::text as evolution, approval_card,
          fallback_model, api_mode, budget_cents, max_concurrent, heartbeat_enabled, heartbeat_cron, coalesce(created_by, '') as created_by, version
