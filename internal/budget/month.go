package budget

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

//go:embed month.sql
var monthSQL string

// microsPerCent are micro-dollars.
const microsPerCent = 10_000

// Month is how much an agent may spend in a month, all in all, in cents.
type Month struct {
	AgentID string
	Cents   int64
	// Soft only warns. It counts where the agent had no such budget: one that it
	// had keeps its zone, and whether it stops.
	Soft bool
	By   string
}

// SetMonth makes that budget, or changes its limit. It runs in the transaction
// that changes the agent, which calls Alone before it does.
func SetMonth(ctx context.Context, tx postgres.DB, m Month) error {
	row, err := postgres.One[struct{ ID string }](ctx, tx, monthSQL, pgx.StrictNamedArgs{"id": "b" + strings.ToLower(rand.Text()[:9]),
		"agent": m.AgentID, "limit": m.Cents * microsPerCent, "hard": !m.Soft, "by": m.By})
	if err == nil {
		_, err = tx.Exec(ctx, countSQL, row.ID)
	}
	if err != nil {
		return fmt.Errorf("set budget of a month: %w", postgres.Classify(err))
	}
	return nil
}
