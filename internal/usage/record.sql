-- all agents: every row says whose it is.
select added, grown, late from usage_record($1::jsonb)
