-- What gate_reserve would find: an approval that covers the call, or else the
-- newest one of the very same call, unless it was used up or withdrawn.
select id, state, reason
from (
    select p.id, p.state, p.reason, p.created_at, 0 as rank
    from approvals p
    where p.agent_id = @agent and p.tool = @tool and p.kind = 'call' and p.state = 'approved'
      and p.covers_until > clock_timestamp() and p.definition = decode(@definition, 'hex') and p.covers is not null
      and not exists (select from jsonb_each(p.covers) c where (@arguments::jsonb -> c.key) is distinct from c.value)
    union all
    (select p.id, p.state, p.reason, p.created_at, 1
     from approvals p
     where p.agent_id = @agent and p.tool = @tool and p.kind = 'call'
       and p.definition = decode(@definition, 'hex') and p.arguments_hash = @hash
       and p.expires_at > clock_timestamp() and p.state not in ('cancelled', 'revoked')
     order by p.created_at desc
     limit 1)
) found
where state <> 'used'
order by rank, created_at desc
limit 1
