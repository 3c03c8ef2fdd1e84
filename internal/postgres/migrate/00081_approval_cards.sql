-- +goose Up
-- Where an agent's requests for approval are told to a person, as
-- channel:destination; empty: nowhere, they wait to be looked for.
alter table agents add column approval_card text not null default '' check (approval_card = '' or approval_card ~ '^[a-z]+:.+$');

-- A card is owed as soon as its request is there: both are written at once, so
-- none is lost and none is there twice.
create table approval_cards (
    approval_id   text primary key references approvals (id) on delete cascade,
    destination   text not null,
    attempts      integer not null default 0,
    claimed_until timestamptz not null default '-infinity',
    sent_at       timestamptz
);
create index approval_cards_due on approval_cards (claimed_until) where sent_at is null;

-- +goose StatementBegin
create function approval_card() returns trigger language plpgsql as $$
begin
    insert into approval_cards (approval_id, destination)
    select new.id, a.approval_card from agents a where a.id = new.agent_id and a.approval_card <> '';
    return null;
end
$$;
-- +goose StatementEnd
create trigger approval_card after insert on approvals for each row when (new.state = 'pending') execute function approval_card();

-- Decides a request from its card, and records that in the same transaction.
-- One compare-and-set: it must be pending and in time now. An approved call has
-- as long from here as it had to be decided.
-- +goose StatementBegin
create function approval_decide_by_card(approval text, agent text, decision text, why text, decider text, rows jsonb) returns boolean language plpgsql as $$
begin
    update approvals p
    set state = decision, reason = why, decided_by = decider, decided_at = clock_timestamp(),
        covers_until = case when decision = 'approved' and p.kind = 'grant' then clock_timestamp() + g.grant_life end,
        expires_at = case when decision = 'approved' and p.kind = 'call' then clock_timestamp() + (p.expires_at - p.created_at) else p.expires_at end
    from agents g
    where g.id = p.agent_id and p.id = approval and p.agent_id = agent and p.state = 'pending' and p.expires_at > clock_timestamp();
    if not found then
        return false;
    end if;
    perform audit_append(rows);
    return true;
end
$$;
-- +goose StatementEnd
