select id, at, agent_id, user_id, session_id, request_type, provider, model, asked_model, tool, units,
       input as input_tokens, output as output_tokens, reasoning as reasoning_tokens, cache_read as cache_read_tokens,
       cache_write_5m as cache_write_5m_tokens, cache_write_1h as cache_write_1h_tokens, cost_micros as cost_micro_usd, price_version, source
from usage
where (@agent::text[] is null or agent_id = any (@agent::text[])) and (at, id) < (@before::timestamptz, @before_id::bigint)
order by at desc, id desc
limit @limit
