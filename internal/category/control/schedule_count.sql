-- The lock makes the count true until the transaction ends. What has had its last
-- slot is kept for a while to be seen, and does not count.
with held as materialized (select id from agents where id = @agent for update)
select count(s.id) as n from held left join schedules s on s.created_by = held.id and s.next_slot is not null
