select coalesce((select canonical from memory_aliases where agent_id = @agent and alias = @canonical), @canonical::text) as canonical,
       coalesce((select canonical from memory_aliases where agent_id = @agent and alias = @alias), @alias::text) as alias,
       (select count(*) from memory_aliases where agent_id = @agent) as aliases
