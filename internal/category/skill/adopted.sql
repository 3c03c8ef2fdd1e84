with used as (
    update skills set uses = uses + 1, last_used_at = @now where id = @skill_id
)
insert into skill_adoptions (skill_id, agent_id, adopted_as, adopted_at)
values (@skill_id, @agent, @as, @now)
on conflict (skill_id, agent_id) do update set adopted_as = excluded.adopted_as
