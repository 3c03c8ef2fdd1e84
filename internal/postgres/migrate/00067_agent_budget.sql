-- +goose Up
-- What an agent may spend in a month is a budget like any other; the agent's own
-- column only shows it, whoever sets it and by whichever way.

-- +goose StatementBegin
create function agent_budget_shown() returns trigger language plpgsql as $$
begin
    if tg_op in ('UPDATE', 'DELETE') and old.user_id = '' and old.tool = '' and old.period = 'month' then
        update agents set budget_cents = null, version = version + 1
        where id = old.agent_id and budget_cents is not null
          and not exists (select from budgets b where b.agent_id = old.agent_id and b.user_id = '' and b.tool = '' and b.period = 'month');
    end if;
    if tg_op in ('INSERT', 'UPDATE') and new.user_id = '' and new.tool = '' and new.period = 'month' then
        update agents set budget_cents = new.limit_micros / 10000, version = version + 1
        where id = new.agent_id and budget_cents is distinct from new.limit_micros / 10000;
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger agent_budget_shown after insert or update or delete on budgets for each row execute function agent_budget_shown();
