package operator

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

var (
	//go:embed maintain.sql
	maintainSQL string
	//go:embed maintain_odoo.sql
	maintainOdooSQL string
)

// Maintained is what Maintain removed and made.
type Maintained struct {
	Outcomes  int `json:"outcomes"`  // first outcomes of writes, after the day in which a repetition is recognised
	Approvals int `json:"approvals"` // requests decided or expired more than 30 days ago
	Decisions int `json:"decisions"` // choices that expired more than 30 days ago and nobody made
	Buckets   int `json:"buckets"`   // limits that nobody drew on for a day: they are full again
	// Odoo counts documents older than a week and changes older than 400 days.
	Odoo      MaintainedOdoo `json:"odoo" db:"-"`
	Work      int            `json:"work"`      // pieces of work that ended more than 30 days ago
	Slots     int            `json:"slots"`     // records of slots of schedules, as old
	Schedules int            `json:"schedules"` // schedules without a slot to come, as old
	Reminders int            `json:"reminders"` // reminders that were over more than 30 days ago
	// Skills counts searches without an answer and listings of hubs that nobody
	// looks at any more, and versions beyond the newest 20 of a skill.
	Skills int `json:"skills"`
	// Consolidated counts the agents whose memories were gone over.
	Consolidated int `json:"consolidated" db:"-"`
	Counters     int `json:"counters"` // of telemetry and of budgets, that nothing asks for any more
	// Partitions counts the months of the audit trail that were made, so that
	// the next three are always there.
	Partitions int `json:"partitions"`
}

const (
	maintainCommand = "maintain"
	maintainTime    = 30 * time.Minute // that memories are gone over at most
	maintainRest    = 30 * time.Second // left of a function's time for what comes after
)

// MaintainedOdoo is what Maintain removed of what was kept for Odoo.
type MaintainedOdoo struct {
	Files  int `json:"files"`
	Writes int `json:"writes"`
}

// Maintain removes what is of no use any more, prepares the coming months of
// the audit trail, adds up usage, and consolidates memories. It is safe at any time and any number of times; "serve"
// and the scheduled function call it every hour or so.
func Maintain(ctx context.Context, db postgres.DB, now time.Time) (Maintained, error) {
	done, err := postgres.One[Maintained](ctx, db, maintainSQL, nil)
	if err != nil {
		return Maintained{}, fmt.Errorf("maintain database: %w", err)
	}
	done.Odoo, err = postgres.One[MaintainedOdoo](ctx, db, maintainOdooSQL, pgx.StrictNamedArgs{"now": now})
	if err != nil {
		return done, fmt.Errorf("maintain odoo: %w", err)
	}
	until := time.Now().Add(maintainTime)
	if end, ok := ctx.Deadline(); ok && end.Add(-maintainRest).Before(until) {
		until = end.Add(-maintainRest)
	}
	if err := usage.Fold(ctx, db); err != nil {
		return done, err
	}
	agents, err := memory.ConsolidateAll(ctx, db, now, until)
	if err != nil {
		return done, fmt.Errorf("consolidate memories: %w", err)
	}
	done.Consolidated = len(agents)
	return done, nil
}

func (s *session) maintain(ctx context.Context, _ caller.Caller, _ noArgs) (Maintained, error) {
	return Maintain(ctx, s.db, s.Now())
}
