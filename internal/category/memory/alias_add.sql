-- The names that led to the alias's old meaning, that meaning itself and the
-- alias all lead to the canonical name now.
with moved as (
    update memory_aliases set canonical = @canonical
    where agent_id = @agent and canonical = @old and @old::text <> @canonical::text and alias <> @canonical
    returning alias
), added as (
    insert into memory_aliases (agent_id, alias, canonical)
    select distinct @agent::text, name, @canonical::text
    from unnest(array[@alias::text, @old::text]) as n (name)
    where name <> @canonical::text and name not in (select alias from moved)
    on conflict (agent_id, alias) do update set canonical = excluded.canonical
    returning alias
)
select 1 + count(*) as names
from (select alias from moved union select alias from added
      union select alias from memory_aliases where agent_id = @agent and canonical = @canonical) names
