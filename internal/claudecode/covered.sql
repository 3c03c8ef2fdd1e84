-- all agents: $1 says whose.
select s as session from unnest($3::text[]) s
where exists (select from usage u where u.session_id = s and u.session_id <> '' and u.agent_id = $1 and u.source = $2 and u.source_id like '%#%')
