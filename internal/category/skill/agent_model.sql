select model from agents where id = @agent
