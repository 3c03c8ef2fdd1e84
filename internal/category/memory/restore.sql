with recursive chain as (
    select a.n, b.valid_until as until, b.superseded_by as next
    from memories b
    join memories a on a.agent_id = b.agent_id and a.superseded_by = b.id
    where b.agent_id = @agent and b.origin = @origin and b.created_at >= @since and b.invalidated_at is not null
      and a.invalidated_at is null and not a.quarantined
    union -- not all: an import may have brought a circle
    select c.n, b.valid_until, b.superseded_by
    from chain c
    join memories b on b.agent_id = @agent and b.id = c.next
    where b.invalidated_at is not null
), ends as (
    select c.n, c.until, c.next
    from chain c
    left join memories b on b.agent_id = @agent and b.id = c.next
    where b.id is null or b.invalidated_at is null
), holding as (
    -- one live row for each content
    select distinct on (m.digest) m.n
    from ends e
    join memories m on m.n = e.n
    where m.agent_id = @agent
      and case when m.fact is null then e.next is null else coalesce(least(e.until, m.said_until) > @now, true) end
      and not exists (select from memories x where x.agent_id = @agent and x.digest = m.digest and x.live and x.n <> m.n)
    order by m.digest, m.n desc
)
update memories m set
    valid_until   = case when m.fact is null then m.valid_until else least(e.until, m.said_until) end,
    superseded_by = e.next,
    retired       = m.n not in (select n from holding)
from ends e
where m.agent_id = @agent and m.n = e.n
