-- The agent of that id and those whose ids look like it, itself first.
select id from agents
where translate(replace(replace(id, 'rn', 'm'), 'vv', 'w'), '01i_', 'oll-') = translate(replace(replace(@id, 'rn', 'm'), 'vv', 'w'), '01i_', 'oll-')
order by id <> @id, id
limit 1
