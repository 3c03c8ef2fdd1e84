-- all agents: whoever sends cards sends everybody's.
update approval_cards set sent_at = clock_timestamp() where approval_id = @id
