select (select count(*) from memories e
        where e.agent_id = @agent and e.live and e.layer = 'episodic' and e.importance >= @importance and e.created_at >= @since
          and not exists (select from memories c
                          where c.agent_id = @agent and c.live and c.derived_from <> '{}' and c.derived_from @> array[e.id])) as waiting,
       (select count(*) from (select from memories where agent_id = @agent and live and layer = 'semantic' limit 100000) s) as semantic,
       r.ran_at, coalesce(r.retired, 0) as retired, coalesce(r.archived, 0) as archived,
       coalesce(r.linked, 0) as linked, coalesce(r.reindexed, 0) as reindexed
from (select @agent::text as agent_id) a
left join memory_consolidations r using (agent_id)
