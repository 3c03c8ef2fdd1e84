update agents
set evolution = evolution || jsonb_build_object(@field::text, @value::jsonb), version = version + 1, updated_at = @now
where id = @agent_id and (@operator::boolean or id in (select agents_under(@agent)))
