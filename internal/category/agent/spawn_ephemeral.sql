-- What holds its maker back is taken over, all of it: nothing is shed by
-- spawning.
insert into agents (id, display_name, role, reports_to, created_by, model, ephemeral, allowed_tools,
                    denied_tools, approval_required_tools, scoped_tools, rules, approver, approval_life, grant_life, limits,
                    fallback_model, api_mode, budget_cents, max_concurrent)
select @id, 'Ephemeral of ' || m.id, 'worker', m.id, m.id, m.model, true, @tools,
       m.denied_tools, m.approval_required_tools, m.scoped_tools, m.rules, m.approver, m.approval_life, m.grant_life, m.limits,
       m.fallback_model, m.api_mode, m.budget_cents, m.max_concurrent
from agents m
where m.id = @agent
