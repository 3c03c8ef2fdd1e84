-- all agents: the skill is one that the caller may change
-- Cut again, a section of the same text keeps its id.
with old as (
    delete from skill_sections where skill_id = @id and version <> @version
), cut as (
    select t.id, t.heading, t.content, t.words, t.position
    from unnest(@ids::text[], @headings::text[], @texts::text[], @words::text[]) with ordinality as t (id, heading, content, words, position)
)
insert into skill_sections (id, skill_id, version, position, heading, content, terms)
select c.id, @id, @version::integer, c.position, c.heading, c.content, string_to_array(c.words, E'\x1f')
from cut c
on conflict (skill_id, version, position) do update set heading = excluded.heading, content = excluded.content, terms = excluded.terms
returning position, id
