-- all agents: what a public hub has is nobody's secret
select commit, skills, fetched_at from skill_hubs where hub = @hub
