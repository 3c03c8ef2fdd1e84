-- One agent's feedback: adds a record unless the reward is 0, drops the oldest
-- beyond what is kept, and tells how many there are then.
with added as (
    insert into inference_feedback (agent_id, sketch, response, reward, model, created_at)
    select @agent::text, @sketch::bigint[], @response::text, @reward::smallint, @model::text, @now::timestamptz
    where @reward::smallint <> 0
    returning id
), dropped as (
    delete from inference_feedback
    where id in (
        select id
        from inference_feedback
        where agent_id = @agent
        order by created_at desc, id desc
        offset greatest(@keep::int - (select count(*) from added), 0)
    )
    returning id
)
select ((select count(*) from inference_feedback where agent_id = @agent)
        + (select count(*) from added) - (select count(*) from dropped))::int as records
