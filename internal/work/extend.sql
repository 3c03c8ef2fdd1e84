update work set lease_until = clock_timestamp() + make_interval(secs => @lease)
where id = @id and fence = @fence and state = 'running'
