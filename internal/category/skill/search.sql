select s.id as skill_id, s.name as skill_name, v.description, s.scope, s.version, s.state, v.risk,
       case when s.scope = 'shared' then s.created_by else '' end as shared_by,
       array(select t from unnest(v.head_terms) t where t = any (@terms::text[])) as head,
       array(select t from unnest(v.body_terms) t where t = any (@terms::text[])) as body
from skills s join skill_versions v on v.skill_id = s.id and v.version = s.version
where (v.head_terms && @terms::text[] or v.body_terms && @terms::text[])
  and s.state <> 'archived' and (v.passed or v.accepted_by <> '')
  and (@own::boolean and (s.scope = 'agent' and s.agent_id = @agent
                          or s.scope = 'global' and not exists (select from skills o where o.scope = 'agent' and o.agent_id = @agent and o.name = s.name and o.state <> 'archived'))
       or @shared::boolean and s.scope = 'shared')
order by s.uses desc, s.id
limit @limit
