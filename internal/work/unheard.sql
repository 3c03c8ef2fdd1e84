-- all agents: what a message of SQS was about, by id. Told again when it can run.
update work set sent_at = null where id = @id and state = 'queued'
