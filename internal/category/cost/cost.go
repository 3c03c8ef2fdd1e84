// Package cost holds the tools that tell what agents cost and how reliable they
// are.
//
// Money is in whole micro-dollars. What has no known price is counted beside the
// money, never in it as zero, and where nothing was recorded the answer says so.
// An agent sees itself and the agents that report to it, as with agent_status;
// a credential with the scope operator sees every agent.
//
// The tools read only. Usage is recorded by package usage; no tool adds to it,
// because an agent must not be able to change its own bill.
package cost

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed visible.sql
var visibleSQL string

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
}

// Open connects to what the tools need.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open cost: %w", err)
	}
	c := New(db, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category {
	c := cost{db: db, now: now}
	return tool.Category{Name: "cost", Tools: []tool.Tool{
		tool.Read("cost_summary", "Tell what agents cost, in all or by model, day and the like.", c.summary),
		tool.Read("cost_agents", "Tell what each agent cost, the dearest first.", c.agents),
		tool.Read("cost_users", "Tell what each user cost, the dearest first.", c.users),
		tool.Read("cost_recent", "List the last requests with their cost.", c.recent),
		tool.Read("cost_multi_vs_single", "Compare the cost of work for agents and for people.", c.multiVsSingle),
		tool.Read("reliability_summary", "Tell how often an agent's calls succeed.", c.reliability),
	}}
}

type cost struct {
	db  postgres.DB
	now func() time.Time
}

// seen gives the agents that a report of this caller may be about: the one that
// was asked for, or all that it may see; nil is everyone. An agent that may not
// be seen and one that does not exist get the same answer.
func (c cost) seen(ctx context.Context, who caller.Caller, asked string) ([]string, error) {
	if who.Operator() {
		if asked == "" {
			return nil, nil
		}
		return []string{asked}, nil // also one that is gone: what it cost is not
	}
	rows, err := postgres.All[struct{ ID string }](ctx, c.db, visibleSQL, pgx.StrictNamedArgs{"agent": who.Agent})
	if err != nil {
		return nil, fmt.Errorf("read visible agents: %w", err)
	}
	ids := []string{who.Agent}
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	switch {
	case asked == "":
		return slices.Compact(slices.Sorted(slices.Values(ids))), nil
	case slices.Contains(ids, asked):
		return []string{asked}, nil
	}
	return nil, fault.New(fault.NotFound, "no agent %s that you may see; list_agents shows those you may", asked)
}
