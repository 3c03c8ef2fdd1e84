package memory

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/embed"
	"pawgate/internal/postgres"
)

var (
	//go:embed meaning.sql
	meaningSQL string
	//go:embed meaning_pgvector.sql
	meaningPgvectorSQL string
	//go:embed vector_keep.sql
	vectorKeepSQL string
)

// Embedder turns texts into vectors of length 1. *embed.Client is one.
type Embedder interface {
	Model() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// How long a call waits for a vector. A search goes on by words alone, and a
// memory gets its vector from the next backfill.
const (
	searchEmbedTimeout = 1500 * time.Millisecond
	storeEmbedTimeout  = 3 * time.Second
)

// How many memories a search compares by meaning: so many of those whose codes
// are most alike by their whole vectors, in the server where it has pgvector,
// and so many at most in the final order.
const (
	nearest    = 120
	nearestFar = 1000 // with pgvector
)

// meanings are the memories that mean most nearly what a query does, and how
// nearly, between 0 and 1. Without an embedder there are none; asked says
// whether it has one that answered in time.
func (m memory) meanings(ctx context.Context, v view, query string, f filterArgs) (near map[int32]float64, asked bool, err error) {
	if m.embedder == nil {
		return nil, true, nil
	}
	asking, cancel := context.WithTimeout(ctx, searchEmbedTimeout)
	defer cancel()
	vectors, err := m.embedder.Embed(asking, []string{query})
	if err != nil {
		return nil, false, ctx.Err()
	}
	near, err = m.nearest(ctx, v, vectors[0], f)
	if err != nil {
		return nil, true, fmt.Errorf("read vectors: %w", err)
	}
	return near, true, nil
}

func (m memory) nearest(ctx context.Context, v view, vector []float32, f filterArgs) (map[int32]float64, error) {
	far, err := m.pgvector.present(ctx, m.db, m.now())
	if err != nil {
		return nil, err
	}
	args := f.named(v)
	args["model"], args["code"], args["limit"], args["now"] = m.embedder.Model(), embed.Code(vector), nearest, m.now()
	all := make(map[int32]float64, nearest)
	if far {
		args["vector"], args["wide"] = vector, nearestFar
		rows, err := postgres.All[struct {
			Memory int32
			Cosine float64
		}](ctx, m.db, meaningPgvectorSQL, args)
		for _, r := range rows {
			all[r.Memory] = meaning(r.Cosine)
		}
		return all, err
	}
	rows, err := postgres.All[struct {
		Memory int32
		Vector []float32
	}](ctx, m.db, meaningSQL, args)
	for _, r := range rows {
		all[r.Memory] = meaning(embed.Cosine(vector, r.Vector))
	}
	return all, err
}

// meaning is how much a cosine says: what two unrelated texts have in common
// says nothing.
func meaning(cosine float64) float64 {
	return max(0, cosine-unrelated) / (1 - unrelated)
}

// remember gives a kept memory its vector, if it can be had now. If not, that
// is no error of the call: the memory is kept, and Backfill finds it.
func (m memory) remember(ctx context.Context, agent, id, text string) {
	if m.embedder == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, storeEmbedTimeout)
	defer cancel()
	if vectors, err := m.embedder.Embed(asking, []string{text}); err == nil {
		_ = m.keepVector(ctx, agent, id, vectors[0])
	}
}

func (m memory) keepVector(ctx context.Context, agent, id string, vector []float32) error {
	_, err := postgres.Exec(ctx, m.db, vectorKeepSQL, pgx.StrictNamedArgs{
		"agent": agent, "id": id, "model": m.embedder.Model(), "code": embed.Code(vector), "vector": vector,
	})
	if err != nil {
		return fmt.Errorf("keep vector: %w", err)
	}
	return nil
}
