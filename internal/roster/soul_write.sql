with old as (
    delete from agent_souls where agent_id = @agent_id and version <= @oldest::integer
)
insert into agent_souls (agent_id, version, content, note, written_by, written_at)
values (@agent_id, @version::integer, @content, @note, @by, @now)
