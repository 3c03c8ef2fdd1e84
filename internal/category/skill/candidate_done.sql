insert into skill_candidates (agent_id, candidate_id, skill_id, made_at)
values (@agent, @candidate, @skill, @now)
on conflict (agent_id, candidate_id) do update set skill_id = excluded.skill_id, made_at = excluded.made_at
