select m.n, m.id, left(m.content, @excerpt) as content, length(m.content) > @excerpt as truncated,
       m.tags, m.layer, m.importance, m.created_at,
       array(select s.id from memories s
             where s.agent_id = @agent and s.live and s.n <> m.n
               and (@shared::bigint[] = '{}' or s.terms && @shared)
               and (s.same_as = coalesce(m.same_as, m.n) or s.n = m.same_as)
             order by s.n) as similar_ids
from memories m
where m.agent_id = @agent and m.live and m.n = any (@numbers::integer[])
  and (@shared::bigint[] = '{}' or m.terms && @shared)
