-- The lock makes the count true until the transaction ends.
with held as materialized (select id from agents where id = @agent for update)
select count(r.id) as n from held left join reminders r on r.agent_id = held.id and r.state = 'pending'
