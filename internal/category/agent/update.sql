with before as (
    select * from agents where id = @agent_id and (@operator::boolean or id in (select agents_under(@agent)))
), after as (
    select coalesce(@display_name::text, b.display_name) as display_name, coalesce(@role::text, b.role) as role,
           coalesce(@state::text, b.state) as state, coalesce(@trigger::text, b.trigger) as trigger, coalesce(@icon::text, b.icon) as icon,
           case when @reports_to::text is null then b.reports_to else nullif(trim(@reports_to::text), '') end as reports_to,
           coalesce(@model::text, b.model) as model, coalesce(@fallback_model::text, b.fallback_model) as fallback_model,
           coalesce(@api_mode::text, b.api_mode) as api_mode, coalesce(@budget_cents::bigint, b.budget_cents) as budget_cents,
           coalesce(@max_concurrent::integer, b.max_concurrent) as max_concurrent,
           coalesce(@heartbeat_enabled::boolean, b.heartbeat_enabled) as heartbeat_enabled,
           coalesce(@heartbeat_cron::text, b.heartbeat_cron) as heartbeat_cron
    from before b
), differs as (
    select array_remove(array[
        case when a.display_name <> b.display_name then 'display_name' end, case when a.role <> b.role then 'role' end,
        case when a.state <> b.state then 'status' end, case when a.trigger <> b.trigger then 'trigger' end,
        case when a.icon <> b.icon then 'icon' end, case when a.reports_to is distinct from b.reports_to then 'reports_to' end,
        case when a.model <> b.model then 'model' end, case when a.fallback_model is distinct from b.fallback_model then 'fallback_model' end,
        case when a.api_mode is distinct from b.api_mode then 'api_mode' end,
        case when a.budget_cents is distinct from b.budget_cents then 'budget_cents' end,
        case when a.max_concurrent is distinct from b.max_concurrent then 'max_concurrent' end,
        case when a.heartbeat_enabled is distinct from b.heartbeat_enabled then 'heartbeat_enabled' end,
        case when a.heartbeat_cron is distinct from b.heartbeat_cron then 'heartbeat_cron' end], null) as changed
    from before b, after a
)
update agents u
set display_name = a.display_name, role = a.role, state = a.state, trigger = a.trigger, icon = a.icon, reports_to = a.reports_to, model = a.model,
    fallback_model = a.fallback_model, api_mode = a.api_mode, budget_cents = a.budget_cents, max_concurrent = a.max_concurrent,
    heartbeat_enabled = a.heartbeat_enabled, heartbeat_cron = a.heartbeat_cron,
    version = u.version + least(cardinality(d.changed), 1),
    updated_at = case when cardinality(d.changed) > 0 then @now else u.updated_at end
from after a, differs d
where u.id = @agent_id
returning u.id as agent_id, d.changed, u.version
