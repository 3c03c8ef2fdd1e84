-- What holds its maker back is taken over within the statement, all of it.
insert into agents (id, display_name, role, reports_to, model, trigger, icon, created_by, created_at, updated_at, allowed_tools,
                    denied_tools, approval_required_tools, scoped_tools, rules, approver, approval_life, grant_life, limits,
                    fallback_model, api_mode, budget_cents, max_concurrent)
select @id, @display_name, @role, @reports_to, coalesce(nullif(@model, ''), m.model), @trigger, @icon, m.id, @now, @now, @allowed,
       array(select unnest(m.denied_tools) union select unnest(@never::text[])),
       m.approval_required_tools, m.scoped_tools, m.rules, m.approver, m.approval_life, m.grant_life, m.limits,
       m.fallback_model, m.api_mode, m.budget_cents, m.max_concurrent
from agents m
where m.id = @agent
returning id as agent_id, display_name, role, state, coalesce(reports_to, '') as reports_to, model, trigger, icon, 0 as soul_version, '' as note
