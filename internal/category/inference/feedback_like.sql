-- One agent's feedback whose prompts share something with a prompt.
select sketch, response, reward, created_at
from inference_feedback
where agent_id = @agent and sketch && @sketch::bigint[]
order by created_at desc
limit @most
