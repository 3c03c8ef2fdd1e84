-- all agents: whoever has the id may let it go.
select budget_release($1::text[])
