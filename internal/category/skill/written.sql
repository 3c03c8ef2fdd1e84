select candidate_id, skill_id from skill_candidates where agent_id = @agent
