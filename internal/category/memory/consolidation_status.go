package memory

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed consolidation_status.sql
var consolidationStatusSQL string

// What counts as waiting to be consolidated: important episodes of a week
// that no later memory was derived from.
const (
	waitingImportance = 7
	waitingDays       = 7
)

type consolidationStatusArgs struct{}

type consolidationStatusResult struct {
	// Waiting are important recent episodes from which nothing was concluded.
	Waiting  int `json:"waiting"`
	Semantic int `json:"semantic_memories"`
	// LastRun is the latest scheduled consolidation; absent before the first.
	LastRun *consolidationRun `json:"last_run,omitzero"`
}

type consolidationRun struct {
	RanAt time.Time `json:"ran_at"`
	Consolidated
}

// consolidationStatus says what waits to be consolidated and what the last
// run did.
func (m memory) consolidationStatus(ctx context.Context, who caller.Caller, _ consolidationStatusArgs) (consolidationStatusResult, error) {
	row, err := postgres.One[struct {
		Waiting, Semantic                    int
		RanAt                                *time.Time
		Retired, Archived, Linked, Reindexed int
	}](ctx, m.db, consolidationStatusSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "since": m.now().AddDate(0, 0, -waitingDays), "importance": waitingImportance,
	})
	if err != nil {
		return consolidationStatusResult{}, fmt.Errorf("read consolidation status: %w", err)
	}
	result := consolidationStatusResult{Waiting: row.Waiting, Semantic: row.Semantic}
	if row.RanAt != nil {
		result.LastRun = &consolidationRun{RanAt: *row.RanAt, Consolidated: Consolidated{
			Retired: row.Retired, Archived: row.Archived, Linked: row.Linked, Reindexed: row.Reindexed,
		}}
	}
	return result, nil
}
