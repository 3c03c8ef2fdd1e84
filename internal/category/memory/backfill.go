package memory

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

//go:embed vectors_missing.sql
var vectorsMissingSQL string

const (
	backfillBatch  = 64   // texts in one request
	backfillLength = 8000 // characters of a text
)

// Backfilled is how far a backfill has come.
type Backfilled struct {
	Done    int `json:"done"`
	Missing int `json:"missing"` // memories still without a vector
}

// Backfill gives every live memory of an agent a vector of the embedder's
// model. It may be stopped at any time and started again: it goes on with what
// is missing. progress is called after each batch and may be nil. A server
// that does not answer ends it with an error; what was done stays.
func Backfill(ctx context.Context, db postgres.DB, agent string, e Embedder, progress func(Backfilled)) (Backfilled, error) {
	m := memory{db: db, now: time.Now, embedder: e}
	var done Backfilled
	for after := int32(0); ; {
		rows, err := postgres.All[struct {
			N           int32
			ID, Content string
			Missing     int
		}](ctx, db, vectorsMissingSQL, pgx.StrictNamedArgs{
			"agent": agent, "after": after, "model": e.Model(), "length": backfillLength, "limit": backfillBatch,
		})
		if err != nil {
			return done, fmt.Errorf("find memories without a vector: %w", err)
		}
		if len(rows) == 0 {
			return done, nil
		}
		texts := make([]string, len(rows))
		for i, r := range rows {
			texts[i] = r.Content
		}
		vectors, err := e.Embed(ctx, texts)
		if err != nil {
			return done, fmt.Errorf("backfill vectors: %w", err)
		}
		for i, r := range rows {
			if err := m.keepVector(ctx, agent, r.ID, vectors[i]); err != nil {
				return done, err
			}
			after = r.N
		}
		done.Done += len(rows)
		done.Missing = rows[0].Missing - len(rows)
		if progress != nil {
			progress(done)
		}
	}
}
