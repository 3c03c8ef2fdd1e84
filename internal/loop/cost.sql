-- all agents: the id is one run's own.
select cost_micros as micros from usage where source = $1 and source_id = $2
