-- all agents: for an operator.
select id as approval_id, kind, agent_id, tool, task_id, coalesce(decided_by, '') as decided_by,
       case when kind = 'grant' then 'any arguments'
            when covers is null then 'one call'
            when covers = '{}' then 'any arguments'
            else covers::text end as covers,
       coalesce(covers_until, expires_at) as until
from approvals
where state = 'approved' and coalesce(covers_until, expires_at) > clock_timestamp()
  and (@agent_id = '' or agent_id = @agent_id) and starts_with(id, @prefix)
order by agent_id, tool, decided_at
limit 1000
