package operator

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed first.sql
var firstSQL string

// DefaultAgent is the agent of a first start: on a laptop it may call every
// tool.
const DefaultAgent = "default"

// EnsureDefault makes the agent "default" with every tool allowed and the
// person at the client as its approver, and its first key, unless the agent is there. Of any number of processes that start
// together one makes them and gets the key; the others get "". A key is not
// made again when it was revoked or lost: that is "key create".
func EnsureDefault(ctx context.Context, db postgres.DB, env string) (key string, err error) {
	now := time.Now() // for the record only
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		// A second process waits here for the first one's transaction.
		made, err := postgres.Exec(ctx, tx, firstSQL, pgx.StrictNamedArgs{"agent_id": DefaultAgent, "now": now})
		if err != nil || made == 0 {
			return err
		}
		k, err := insertKey(ctx, tx, env, now, keyCreated{AgentID: DefaultAgent, Scopes: []string{caller.ScopeAll}}, "first key")
		if err != nil {
			return err
		}
		key = k.Key
		r := record{requestID: uuid.NewString(), by: "first-start", method: "agent.create", agent: DefaultAgent, started: now}
		return r.write(ctx, tx, tool.Outcome{}, now)
	})
	if err != nil {
		return "", fmt.Errorf("make default agent: %w", err)
	}
	return key, nil
}
