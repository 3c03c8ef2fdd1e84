-- all agents: for an operator.
select id, at, request_id, door, agent_id, credential_id, method, tool, decision, outcome, reason,
       duration_us / 1000.0::double precision as duration_ms,
       case when pg_column_size(arguments) > 4096 then '{"omitted": true}' else arguments end as arguments
from audit
where (kind = 'outcome' or decision = 'refused')
  and (@agent = '' or agent_id = @agent)
  and (@tool = '' or tool = @tool)
  and (@prefix = '' or starts_with(tool, @prefix))
  and (@decision = '' or decision = @decision)
  and at >= @since
  and (at, id) < (@before, @before_id)
order by at desc, id desc
limit @limit
