select kind, id, text, times, at from (
    (select 'search' as kind, key as id, query as text, times, last_at as at
     from skill_misses
     where agent_id = @agent and last_at >= @since
     order by last_at desc limit @limit)
    union all
    (select 'feedback', id::text, left(detail, 500), 1, created_at
     from feedback
     where agent_id = @agent and signal_type in ('negative', 'correction') and created_at >= @since
     order by created_at desc limit @limit)
    union all
    (select 'memory', id, left(content, 500), times_stored, created_at
     from memories
     where agent_id = @agent and live and 'failure' = any (marks) and created_at >= @since
     order by created_at desc limit @limit)
    union all
    (select 'calls', tool || ':' || reason, 'the tool ' || tool || ' keeps failing: ' || reason, count(*)::integer, max(at)
     from audit
     where agent_id = @agent and at >= @since and kind = 'outcome' and door <> 'operator' and outcome in ('fault', 'invalid') and category <> 'skill'
     group by tool, reason
     having count(*) >= 3
     order by count(*) desc limit @limit)
) e
order by at, kind, id -- oldest first, so that a topic keeps its id as it grows
