-- all agents: the record of an operator's command.
select audit_append(jsonb_build_array(jsonb_build_object(
    'id', @id::uuid, 'kind', 'outcome', 'request_id', @request_id::text, 'door', @door::text, 'agent_id', @agent_id::text,
    'credential_id', @credential_id::text, 'method', @method::text, 'tool', '', 'category', '', 'decision', @decision::text,
    'reason', @reason::text, 'outcome', @outcome::text, 'arguments', @arguments::jsonb, 'duration_us', @duration_us::bigint)))
