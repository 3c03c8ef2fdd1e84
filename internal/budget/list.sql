-- all agents: @agents says whose, null for all of them.
select budget_shown(b, budget_began(b.period, b.zone, now()), coalesce(s.agent_id, b.agent_id), coalesce(s.user_id, b.user_id), coalesce(s.tool, b.tool),
           coalesce(s.settled, 0), coalesce(s.held, 0), coalesce(s.unpriced, 0)) as shown,
       b.warn_percent, b.unpriced,
       coalesce(s.settled, 0) >= b.limit_micros or b.unpriced = 'stop' and coalesce(s.unpriced, 0) > 0 as used,
       coalesce(s.settled, 0) >= b.limit_micros * b.warn_percent / 100.0 or coalesce(s.unpriced, 0) > 0 as warned
from budgets b
left join budget_spent s on s.budget_id = b.id and s.began = budget_began(b.period, b.zone, now())
    and (@agents::text[] is null or s.agent_id = '' or s.agent_id = any (@agents::text[]))
where @agents::text[] is null or b.agent_id in ('', '*') or b.agent_id = any (@agents::text[])
order by b.agent_id, b.user_id, b.tool, b.period, coalesce(s.settled, 0) desc, s.agent_id, s.user_id, s.tool
limit 1000
