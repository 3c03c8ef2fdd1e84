-- all agents: the outbox is one.
update work set sent_at = clock_timestamp()
where id in (select w.id from work w where w.state = 'queued' and w.sent_at is null and w.run_at <= clock_timestamp()
             order by w.run_at for update skip locked limit @most)
returning id
