package usage

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

var (
	//go:embed last.sql
	lastSQL string
	//go:embed prune.sql
	pruneSQL string
)

// Recent is a row as it is shown to an operator.
type Recent struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	Agent      string    `json:"agent_id" db:"agent_id"`
	User       string    `json:"user_id" db:"user_id"`
	Model      string    `json:"model"` // or the tool
	Input      int64     `json:"input_tokens"`
	Output     int64     `json:"output_tokens"`
	CacheRead  int64     `json:"cache_read_tokens" db:"cache_read"`
	CacheWrite int64     `json:"cache_write_tokens" db:"cache_write"`
	Cost       *int64    `json:"cost_micro_usd" db:"cost_micros"` // nil: unknown
	Source     string    `json:"source"`
}

// Last gives rows of an agent, or of all, in the order in which they were
// recorded: the last ones, or the next ones after a row, if one is given.
func Last(ctx context.Context, db postgres.DB, agent string, after int64, limit int) ([]Recent, error) {
	rows, err := postgres.All[Recent](ctx, db, lastSQL, pgx.StrictNamedArgs{"agent": agent, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list usage: %w", err)
	}
	if after == 0 {
		slices.Reverse(rows)
	}
	return rows, nil
}

// Prune removes rows from before a time and leaves their sums; says how many.
// Nothing from before that time is taken any more, or it would count twice.
func Prune(ctx context.Context, db postgres.DB, before time.Time) (int64, error) {
	n, err := postgres.First[struct{ N int64 }](ctx, db, pruneSQL, before)
	if err != nil {
		return 0, fmt.Errorf("prune usage: %w", err)
	}
	return n.N, nil
}
