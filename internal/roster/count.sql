-- all agents: the licence counts those that are not archived.
select count(*) as n from agents where state <> 'archived' and not ephemeral
