package loop

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"pawgate/internal/budget"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

var (
	//go:embed cost.sql
	costSQL string
	//go:embed priced.sql
	pricedSQL string
)

// Ledger is the meter of this installation: its usage table, which knows the
// prices.
type Ledger struct{ DB postgres.DB }

// Priced tells whether there is a price now.
func (l Ledger) Priced(ctx context.Context, provider, model string) (bool, error) {
	found, err := postgres.First[struct{ Priced bool }](ctx, l.DB, pricedSQL, provider, model)
	return found.Priced, err
}

// held is how long money is held, beyond the run's own time, for a completion that
// nobody settles.
const held = 30 * time.Minute

// Hold keeps back what a completion costs at most.
func (l Ledger) Hold(ctx context.Context, most Spent) (string, error) {
	row := most.row()
	h, err := budget.Reserve(ctx, l.DB, budget.Ask{Agent: row.Agent, User: row.User, Most: &row, For: held + max(0, most.Request.Limits.Wall)})
	return h.ID, err
}

// Release lets go of it.
func (l Ledger) Release(ctx context.Context, hold string) error {
	return budget.Release(ctx, l.DB, budget.Hold{ID: hold})
}

// Record keeps a completion once, however often it is told of it.
func (l Ledger) Record(ctx context.Context, s Spent) (micros int64, priced bool, err error) {
	if _, err := budget.Settle(ctx, l.DB, budget.Hold{ID: s.Hold}, s.row()); err != nil {
		return 0, false, err
	}
	cost, err := postgres.First[struct{ Micros *int64 }](ctx, l.DB, costSQL, usage.SourceLoop, s.ID)
	if err != nil || cost.Micros == nil {
		return 0, false, err
	}
	return *cost.Micros, true, nil
}

// row is a completion as the usage table has it.
func (s Spent) row() usage.Row {
	q := s.Request
	row := usage.Row{At: s.At, Agent: q.Agent, User: q.User, Session: q.Session, Task: q.Task,
		RequestType: cmp.Or(usage.RequestType(q.Type), usage.Chat), Provider: s.Provider, Model: s.Model,
		Input: s.Usage.Input, Output: s.Usage.Output, CacheRead: s.Usage.CacheRead, CacheWrite: s.Usage.CacheWrite5m,
		CacheWrite1: s.Usage.CacheWrite1h, Reasoning: min(s.Usage.Reasoning, s.Usage.Output), Source: usage.SourceLoop, ID: s.ID}
	if s.Model != q.Model {
		row.AskedModel = q.Model
	}
	return row
}
