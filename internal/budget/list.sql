-- all agents: @agents says whose, null for all of them.
with standing as (
    select b, coalesce(s.agent_id, b.agent_id) as payer, coalesce(s.user_id, b.user_id) as user_id, coalesce(s.tool, b.tool) as tool,
           coalesce(s.settled, 0) as settled, coalesce(s.unpriced, 0) as unpriced,
           (select coalesce(sum(h.micros), 0)::bigint from budget_holds h -- those that nobody let go and that are over do not count
            where h.budget_id = s.budget_id and h.agent_id = s.agent_id and h.user_id = s.user_id and h.tool = s.tool and h.until >= now()) as held
    from budgets b
    left join budget_spent s on s.budget_id = b.id and s.began = budget_began(b.period, b.zone, now())
        and (@agents::text[] is null or s.agent_id = '' or s.agent_id = any (@agents::text[]))
    where @agents::text[] is null or b.agent_id in ('', '*') or b.agent_id = any (@agents::text[])
)
select budget_shown(b, budget_began((b).period, (b).zone, now()), payer, user_id, tool, settled, held, unpriced) as shown,
       (b).warn_percent, (b).unpriced,
       settled >= (b).limit_micros or (b).unpriced = 'stop' and unpriced > 0 as used,
       settled >= (b).limit_micros * (b).warn_percent / 100.0 or unpriced > 0 as warned,
       case when payer <> '' then array(select agents_made(payer)) end as payers,
       (b).user_id = '*' as each_user
from standing
order by (b).agent_id, (b).user_id, (b).tool, (b).period, settled desc, payer, user_id, tool
limit 1000
