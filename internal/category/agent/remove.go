package agent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

type removeArgs struct {
	AgentID string `json:"agent_id" doc:"-" maxlen:"64"`
}

type removeResult struct {
	AgentID string `json:"agent_id"`
	State   string `json:"state"`
	roster.Removal
	Note string `json:"note"`
}

// remove archives an agent below the caller, and says what becomes of its
// things. It fails with fault.NotFound for an agent that the caller may not
// see, with fault.Denied for the caller itself and for one with the role main,
// and with fault.Conflict for one that is archived already.
func (c agent) remove(ctx context.Context, who caller.Caller, a removeArgs) (removeResult, error) {
	r := removeResult{AgentID: a.AgentID, State: archived,
		Note: "nothing was deleted: memories, records and versions of its soul are kept, and an operator can bring it back: pawgate agent restore " + a.AgentID}
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if err := roster.Lock(ctx, tx); err != nil {
			return err
		}
		before, err := findLive(ctx, tx, who, a.AgentID)
		switch {
		case err != nil:
			return err
		case a.AgentID == who.Agent:
			return fault.New(fault.Denied, "you cannot remove yourself; ask the agent you report to, or an operator")
		case before.Role == mainRole && !who.Operator():
			return fault.New(fault.Denied, "agent %s has the role main; only an operator can remove it", a.AgentID)
		}
		r.Removal, err = roster.Archive(ctx, tx, a.AgentID, author(who), c.now())
		return err
	})
	return r, err
}
