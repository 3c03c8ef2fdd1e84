update work set state = 'queued', lease_until = null, sent_at = null, error = @error,
       run_at = clock_timestamp() + make_interval(secs => @wait)
where id = @id and fence = @fence and state = 'running'
