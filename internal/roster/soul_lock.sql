-- One writer at a time for each agent; who only refers to the agent's row is not held up.
select id from agents where id = @agent_id for no key update
