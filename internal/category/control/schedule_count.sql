-- The lock makes the count true until the transaction ends.
with held as materialized (select id from agents where id = @agent for update)
select count(s.id) as n from held left join schedules s on s.created_by = held.id
