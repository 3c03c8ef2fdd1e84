package roster

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

var (
	//go:embed archive.sql
	archiveSQL string
	//go:embed restore.sql
	restoreSQL string
)

// Removal is what became of an agent's things when it was archived.
type Removal struct {
	// MovedTo is the agent that those who reported to it report to now; empty:
	// they report to nobody.
	MovedTo string `json:"reports_moved_to,omitzero"`
	// Moved are those agents.
	Moved []string `json:"reports_moved"`
	// Keys counts its keys that worked; they are refused from the next call on
	// and work again after a restore, unless they are revoked meanwhile.
	Keys int `json:"keys_suspended"`
	// Subjects counts the OAuth subjects that acted as it; as with keys.
	Subjects int `json:"oauth_subjects_suspended"`
	// Approvals counts the requests that waited; they are cancelled.
	Approvals int `json:"approvals_cancelled"`
	// Grants counts the grants and unused approvals that were alive; they are
	// revoked and do not come back.
	Grants int `json:"grants_revoked"`
	// Work counts the items that waited for it or were under way; they are
	// cancelled, and whoever asked for them is told so.
	Work int `json:"work_cancelled"`
	// Schedules counts its own; their slots pass, recorded as suspended, until
	// a restore.
	Schedules int `json:"schedules_suspended"`
	// Orphaned counts the schedules that it made for others; they are switched
	// off, and stay so.
	Orphaned int `json:"schedules_disabled"`
	// Reminders counts those that wait; what is due meanwhile comes after a
	// restore.
	Reminders int `json:"reminders_held"`
}

// Archive puts an agent away, in one statement: it may call nothing from the
// next call on. Nothing of it is deleted. The caller holds the lock and knows
// that the agent is there and not archived.
func Archive(ctx context.Context, tx postgres.DB, agentID, by string, now time.Time) (Removal, error) {
	r, err := postgres.One[Removal](ctx, tx, archiveSQL, pgx.StrictNamedArgs{"agent_id": agentID, "by": by, "now": now})
	if err != nil {
		return Removal{}, fmt.Errorf("archive agent: %w", err)
	}
	return r, nil
}

// Restored is what works again.
type Restored struct {
	AgentID  string `json:"agent_id"`
	State    string `json:"state"`
	Keys     int    `json:"keys_active"`
	Subjects int    `json:"oauth_subjects_active"`
}

// Restore brings an archived agent back, as active. Who reported to it stays
// where it is. The caller holds the lock and has asked CheckLimit.
func Restore(ctx context.Context, tx postgres.DB, agentID string, now time.Time) (Restored, error) {
	r, err := postgres.One[Restored](ctx, tx, restoreSQL, pgx.StrictNamedArgs{"agent_id": agentID, "now": now})
	if err != nil {
		return Restored{}, fmt.Errorf("restore agent: %w", err)
	}
	return r, nil
}
