-- all agents: whoever decides has the scope approve or operator.
-- One compare-and-set: it must be pending and in time now, whoever came first.
-- An approved call has as long from here as it had to be decided.
update approvals p
set state = @state, reason = @reason, decided_by = @by, decided_at = clock_timestamp(),
    covers = @covers::jsonb,
    covers_until = case
        when @state = 'denied' then null
        when p.kind = 'grant' then clock_timestamp() + least(g.grant_life, case when @minutes::int > 0 then @minutes::int * interval '1 minute' end)
        when @minutes::int > 0 then clock_timestamp() + @minutes::int * interval '1 minute'
    end,
    expires_at = case
        when @state = 'denied' or p.kind = 'grant' then p.expires_at
        when @minutes::int > 0 then clock_timestamp() + @minutes::int * interval '1 minute'
        else clock_timestamp() + (p.expires_at - p.created_at)
    end
from agents g
where g.id = p.agent_id and p.id = @id and p.state = 'pending' and p.expires_at > clock_timestamp()
returning p.id
