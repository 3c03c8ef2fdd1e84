package memory

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"pawgate/internal/postgres"
)

//go:embed pgvector.sql
var pgvectorSQL string

// pgvector knows whether the database has that extension. Nothing needs it:
// with it a search by meaning compares more memories by their whole vectors,
// in the server. Only the operator installs it (create extension vector).
type pgvector struct {
	mu    sync.Mutex
	asked time.Time
	has   bool
}

// pgvectorKept is how long an answer is believed.
const pgvectorKept = 5 * time.Minute

// present asks the database, unless it lately did.
func (p *pgvector) present(ctx context.Context, db postgres.DB, now time.Time) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && now.Sub(p.asked) < pgvectorKept {
		return p.has, nil
	}
	row, err := postgres.One[struct{ Has bool }](ctx, db, pgvectorSQL, nil)
	if err != nil {
		return false, err
	}
	p.asked, p.has = now, row.Has
	return row.Has, nil
}
