-- The newest ones, oldest first. Of the arguments only the names.
select tool, request_id, at, outcome in ('ok', 'replayed') as ok,
       case when jsonb_typeof(arguments) = 'object' then array(select jsonb_object_keys(arguments)) else '{}' end as arguments
from (
    select tool, request_id, at, outcome, arguments
    from audit
    where agent_id = @agent and at >= @since and kind = 'outcome' and decision = 'allowed' and door <> 'operator'
      and tool <> '' and category not in ('skill', 'control')
    order by at desc, id
    limit @limit
) calls
order by at, request_id
