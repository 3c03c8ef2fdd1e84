package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed reach.sql
var reachSQL string

// target is an agent that the caller may see.
type target struct {
	AgentID     string
	DisplayName string
	Role        string
	State       string
	Trigger     string
	ReportsTo   string
	Version     int64
	Evolution   string // what was set, as JSON
}

const archived = "archived"

// find gives an agent that the caller may see. It fails with fault.NotFound
// alike for one that does not exist and one that the caller may not see.
func find(ctx context.Context, db postgres.DB, who caller.Caller, agentID string) (target, error) {
	t, err := postgres.One[target](ctx, db, reachSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": agentID,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return target{}, noAgent(agentID)
	}
	if err != nil {
		return target{}, fmt.Errorf("look up agent: %w", err)
	}
	return t, nil
}

func noAgent(agentID string) error {
	return fault.New(fault.NotFound, "no agent %s that you may see; list_agents shows those you may", agentID)
}

// findLive is find for a change: an archived agent stays as it is.
func findLive(ctx context.Context, db postgres.DB, who caller.Caller, agentID string) (target, error) {
	t, err := find(ctx, db, who, agentID)
	if err == nil && t.State == archived {
		return target{}, fault.New(fault.Conflict, "agent %s is archived; an operator can bring it back: pawgate agent restore %s", agentID, agentID)
	}
	return t, err
}

// author is how the record names who made a change.
func author(who caller.Caller) string {
	if who.Agent == "" {
		return who.Credential
	}
	return who.Agent + " (" + who.Credential + ")"
}
