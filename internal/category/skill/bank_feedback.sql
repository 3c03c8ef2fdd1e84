with target as (
    select s.id, s.name, s.version, coalesce(b.id, '') as section_id
    from skills s left join skill_sections b on b.skill_id = s.id and b.id = @id
    where (s.id = @id or b.id is not null) and (s.scope <> 'agent' or s.agent_id = @agent)
), kept as (
    insert into skill_feedback (skill_id, version, section_id, agent_id, credential_id, success, note, created_at)
    select id, version, section_id, @agent, @credential, @success, @note, @now from target
    returning id, skill_id, version
)
select k.id, k.skill_id, t.name as skill_name, k.version,
       1 + (select count(*) from skill_feedback f where f.skill_id = k.skill_id and f.version = k.version) as trials,
       @success::boolean::integer + (select count(*) from skill_feedback f where f.skill_id = k.skill_id and f.version = k.version and f.success) as good
from kept k join target t on t.id = k.skill_id
