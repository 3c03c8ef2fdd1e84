select count(*) as n from pairings where agent_id = @agent_id and state = 'asked'
