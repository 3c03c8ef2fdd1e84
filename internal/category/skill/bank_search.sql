with visible as (
    select s.id, s.name, s.scope, s.version, v.description, v.body, v.head_terms, v.body_terms,
           (select count(*) from skill_feedback f where f.skill_id = s.id and f.version = s.version) as trials,
           (select count(*) from skill_feedback f where f.skill_id = s.id and f.version = s.version and f.success) as good
    from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
    where s.state <> 'archived' and (v.passed or v.accepted_by <> '')
      and (s.scope <> 'agent' or s.agent_id = @agent)
)
select * from (
    select v.id as skill_id, b.id as section_id, v.name as skill_name, v.scope, v.version, b.heading, v.description,
           left(b.content, @excerpt) as text, length(b.content) > @excerpt as truncated, v.trials, v.good,
           array(select t from unnest(v.head_terms) t where t = any (@terms::text[])) as head,
           array(select t from unnest(b.terms) t where t = any (@terms::text[])) as body
    from skill_sections b join visible v on v.id = b.skill_id and v.version = b.version
    where b.terms && @terms::text[]
    union all
    select v.id, '', v.name, v.scope, v.version, '', v.description, left(v.description || E'\n\n' || v.body, @excerpt),
           length(v.description || v.body) + 2 > @excerpt, v.trials, v.good,
           array(select t from unnest(v.head_terms) t where t = any (@terms::text[])),
           array(select t from unnest(v.body_terms) t where t = any (@terms::text[]))
    from visible v
    where v.head_terms && @terms::text[] or v.body_terms && @terms::text[]
) found
order by trials desc, skill_id, section_id
limit @limit
