-- all agents: the link says which request.
select approval_decide_by_card($1, $2, $3, $4, $5, $6::jsonb) as decided
