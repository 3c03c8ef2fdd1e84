-- all agents: one change at a time; readers are not held up.
lock table agents in share row exclusive mode
