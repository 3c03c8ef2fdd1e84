with calls as (
    select tool, category, outcome in ('ok', 'replayed') as done
    from audit
    where agent_id = @agent and kind = 'outcome' and method = 'tools/call' and tool <> '' and door <> 'operator'
      and decision = 'allowed' and at >= @from::timestamptz and at < @to::timestamptz
), by_tool as (
    select avg(done::int)::float8 as part from calls group by tool
)
select (select count(*) from calls) as calls,
       (select count(*) from calls where done) as done,
       (select count(*) from calls where category = 'skill') as skills,
       (select count(*) from by_tool) as tools,
       (select avg(part)::float8 from by_tool) as consistency,
       (select coalesce(sum(requests), 0)::bigint from usage
        where agent_id = @agent and asked_model <> '' and asked_model <> model and at >= @from::timestamptz and at < @to::timestamptz) as fallbacks
