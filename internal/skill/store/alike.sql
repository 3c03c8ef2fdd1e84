-- Names of as many characters, one of the two with letters beyond ASCII: those
-- that may look alike.
select name
from skills
where (scope = @scope and coalesce(agent_id, '') = @agent or scope = 'global' and @scope = 'agent')
  and name <> @name and char_length(name) = char_length(@name)
  and (name !~ '^[a-z0-9-]*$' or @name !~ '^[a-z0-9-]*$')
