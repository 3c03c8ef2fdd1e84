select id, name, octet_length(content) as size, created_at,
       substring(content from (@part::integer - 1) * @bytes::integer + 1 for @bytes) as part
from odoo_files
where agent_id = @agent and report = @report and record = @record and created_at > @since
order by created_at desc, id
limit 1
