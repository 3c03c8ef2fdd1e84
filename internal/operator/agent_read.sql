-- all agents: for an operator.
select id as agent_id, display_name, role, state, model, coalesce(reports_to, '') as reports_to, icon, trigger,
       allowed_tools, denied_tools, approval_required_tools, scoped_tools, source, created_at, updated_at,
       approver, (extract(epoch from approval_life) / 60)::int as approval_minutes, (extract(epoch from grant_life) / 60)::int as grant_minutes,
       limits, rules::text as policy, evolution::text as evolution, approval_card,
       fallback_model, api_mode, budget_cents, max_concurrent, heartbeat_enabled, heartbeat_cron, coalesce(created_by, '') as created_by, version
from agents
where id = @agent_id
