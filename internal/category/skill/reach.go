package skill

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
)

//go:embed reach.sql
var reachSQL string

// reach gives the agent that an argument names, if the caller may act for it:
// itself, an agent that reports to it, or any for an operator. An agent that is
// out of reach and one that does not exist get one answer.
func (k skills) reach(ctx context.Context, who caller.Caller, agent string) (string, error) {
	agent = owner(who, agent)
	r, err := postgres.One[struct{ Reached bool }](ctx, k.db, reachSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": agent})
	if err != nil {
		return "", fmt.Errorf("look for agent: %w", err)
	}
	if !r.Reached {
		return "", fault.New(fault.NotFound, "no agent %s that you may act for; list_agents shows those you may", agent)
	}
	return agent, nil
}

// mine is the skill of a name that an agent works by: its own, else the global
// one, as skill_list shows it. One of its own that was put away is taken where
// there is no other.
func (k skills) mine(ctx context.Context, agent, name string) (store.Stored, error) {
	s, err := store.Find(ctx, k.db, store.Agent, agent, name)
	f, none := fault.Of(err)
	if none = none && f.Reason == fault.NotFound; !none && (err != nil || s.State != archived) {
		return s, err
	}
	global, e := store.Find(ctx, k.db, store.Global, "", name)
	if f, ok := fault.Of(e); ok && f.Reason == fault.NotFound || e == nil && !none && global.State == archived {
		return s, err
	}
	return global, e
}

// archived is the state of a skill that was put away.
const archived = "archived"

// scoped is the skill of a name in one scope that the caller may change.
func (k skills) scoped(ctx context.Context, who caller.Caller, scope, name string) (store.Stored, error) {
	if scope == store.Global {
		if err := needOperator(who, "a global skill"); err != nil {
			return store.Stored{}, err
		}
		return store.Find(ctx, k.db, store.Global, "", name)
	}
	return store.Find(ctx, k.db, store.Agent, who.Agent, name)
}

func needOperator(who caller.Caller, what string) error {
	if who.Operator() {
		return nil
	}
	return fault.New(fault.Denied, "%s is every agent's; only a credential with the scope operator changes it", what)
}
