-- all agents: for an operator.
select id as write_id, agent_id, started_at, login, model, method, record_ids, state, before, values, args, note
from odoo_writes
where @agent_id::text = '' or agent_id = @agent_id
order by started_at desc, id
limit @limit
