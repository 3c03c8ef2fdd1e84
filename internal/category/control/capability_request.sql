-- Under the lock of agent and tool: a grant that is alive, else a request that
-- is pending, else a new one unless too many wait.
with alive as (
    select id, case state when 'approved' then 'granted' else state end as state,
           case state when 'approved' then covers_until else expires_at end as until
    from approvals
    where agent_id = @agent and tool = @tool and kind = 'grant'
      and (state = 'approved' and covers_until > clock_timestamp() or state = 'pending' and expires_at > clock_timestamp())
    order by state, created_at desc
    limit 1
), waiting as (
    select count(*) as n from approvals where agent_id = @agent and state = 'pending' and expires_at > clock_timestamp()
), made as (
    insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, arguments, because, task_id, request_id, created_at, expires_at)
    select @id, 'grant', @agent, @credential, @tool, decode(@definition, 'hex'), sha256('{}'), @shown::jsonb, @because, @task, @request,
           clock_timestamp(), clock_timestamp() + @life::float8 * interval '1 second'
    from waiting
    where n < @most and not exists (select from alive)
    returning id, state, expires_at as until
)
select jsonb_build_object('id', coalesce(a.id, m.id, ''), 'state', coalesce(a.state, m.state, ''),
                          'until', coalesce(a.until, m.until, clock_timestamp()), 'made', m.id is not null, 'pending', w.n)
from waiting w left join alive a on true left join made m on true
