-- all agents: about the server
select to_regtype('vector') is not null as has
