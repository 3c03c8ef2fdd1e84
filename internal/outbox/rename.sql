-- A key made of the message stands for it only as long as a repetition is
-- likelier than a wish to say the same again.
update outbox set key = key || ':' || id
where agent_id = @agent and key = @key
  and (done and updated_at < @now::timestamptz - make_interval(secs => @same_secs::float8)
       or updated_at < @now::timestamptz - interval '1 day')
