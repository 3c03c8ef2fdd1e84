package memory

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed vectors_missing.sql
	vectorsMissingSQL string
	//go:embed vectors_count.sql
	vectorsCountSQL string
)

const (
	backfillBatch  = 64   // texts in one request
	backfillLength = 8000 // characters of a text
)

// Backfilled is how far a backfill has come.
type Backfilled struct {
	Done    int `json:"done"`
	Missing int `json:"missing"` // memories still without a vector
	// Next is where the next part begins.
	Next int32 `json:"next"`
}

// Backfill gives live memories of an agent, those after a place, 0 being the
// beginning, a vector of the embedder's model. It ends after the last or when
// its time is up, and may be stopped and started again at any time: it goes on
// with what is missing. A server that does not answer ends it with
// fault.Unavailable; what was done stays.
func Backfill(ctx context.Context, db postgres.DB, agent string, e Embedder, after int32, atMost time.Duration) (Backfilled, error) {
	m := memory{db: db, now: time.Now, embedder: e}
	done := Backfilled{Next: after}
	count, err := postgres.One[struct{ Missing int }](ctx, db, vectorsCountSQL, pgx.StrictNamedArgs{"agent": agent, "model": e.Model()})
	if err != nil {
		return done, fmt.Errorf("count memories without a vector: %w", err)
	}
	done.Missing = count.Missing
	for end := time.Now().Add(atMost); time.Now().Before(end); {
		n, err := m.backfillBatch(ctx, agent, &done.Next)
		if err != nil || n == 0 {
			return done, err
		}
		done.Done += n
		done.Missing = max(0, done.Missing-n)
	}
	return done, nil
}

// backfillBatch asks for the vectors of the next memories without one.
func (m memory) backfillBatch(ctx context.Context, agent string, after *int32) (int, error) {
	rows, err := postgres.All[struct {
		N           int32
		ID, Content string
	}](ctx, m.db, vectorsMissingSQL, pgx.StrictNamedArgs{
		"agent": agent, "after": *after, "model": m.embedder.Model(), "length": backfillLength, "limit": backfillBatch,
	})
	if err != nil {
		return 0, fmt.Errorf("find memories without a vector: %w", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = r.Content
	}
	vectors, err := m.embedder.Embed(ctx, texts)
	if err != nil {
		return 0, fault.New(fault.Unavailable, "EMBEDDINGS_URL gives no vectors: %v", err)
	}
	for i, r := range rows {
		if err := m.keepVector(ctx, agent, r.ID, vectors[i]); err != nil {
			return 0, err
		}
		*after = r.N
	}
	return len(rows), nil
}
