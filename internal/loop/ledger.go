package loop

import (
	"cmp"
	"context"
	_ "embed"

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

// Record keeps a completion once, however often it is told of it.
func (l Ledger) Record(ctx context.Context, s Spent) (micros int64, priced bool, err error) {
	q := s.Request
	row := usage.Row{At: s.At, Agent: q.Agent, User: q.User, Session: q.Session, Task: q.Task,
		RequestType: cmp.Or(usage.RequestType(q.Type), usage.Chat), Provider: s.Provider, Model: s.Model,
		Input: s.Usage.Input, Output: s.Usage.Output, CacheRead: s.Usage.CacheRead, CacheWrite: s.Usage.CacheWrite5m,
		CacheWrite1: s.Usage.CacheWrite1h, Reasoning: min(s.Usage.Reasoning, s.Usage.Output), Source: usage.SourceLoop, ID: s.ID}
	if s.Model != q.Model {
		row.AskedModel = q.Model
	}
	if _, err := usage.Record(ctx, l.DB, row); err != nil {
		return 0, false, err
	}
	cost, err := postgres.First[struct{ Micros *int64 }](ctx, l.DB, costSQL, usage.SourceLoop, s.ID)
	if err != nil || cost.Micros == nil {
		return 0, false, err
	}
	return *cost.Micros, true, nil
}
