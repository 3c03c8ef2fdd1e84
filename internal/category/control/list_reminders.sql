with shown as (
    select r.id, r.agent_id, r.due_at as trigger_at, r.mode, r.channel, r.chat_id, r.message, r.prompt, 
           left(coalesce(nullif(w.error, ''), n.error, ''), 500) as error,
           case when r.state <> 'fired' then r.state
                when w.finished_at is null and w.id is not null then 'sending'
                when w.state = 'done' and r.mode = 'agent_callback' and n.id is not null and n.finished_at is null then 'sending'
                when w.state = 'done' and coalesce(n.state, 'done') = 'done' then 'delivered'
                when w.state = 'cancelled' then 'cancelled'
                else 'failed' end as state
    from reminders r left join work w on w.id = r.work_id
        left join work n on n.from_agent = r.agent_id and n.idempotency_key = 'notice/' || w.id -- what a callback came to, being sent
    where r.agent_id = @agent
)
select * from shown
where @state = 'all' or state = @state
order by case when state = 'pending' then trigger_at end, trigger_at desc, id
limit @limit
