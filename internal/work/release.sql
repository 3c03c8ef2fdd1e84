update work set state = 'queued', lease_until = null, sent_at = null, run_at = clock_timestamp(), attempts = attempts - 1,
       error = 'the worker was stopped'
where id = @id and fence = @fence and state = 'running'
