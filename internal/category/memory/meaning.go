package memory

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/category/memory/embed"
	"pawgate/internal/postgres"
)

var (
	//go:embed meaning.sql
	meaningSQL string
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

// nearest is how many memories a search compares by meaning.
const nearest = 120

// meanings are the memories that mean most nearly what a query does, and how
// nearly, between 0 and 1. Without an embedder, or when it does not answer in
// time, there are none.
func (m memory) meanings(ctx context.Context, agent, query string, f filterArgs) (map[int32]float64, error) {
	if m.embedder == nil {
		return nil, nil
	}
	asking, cancel := context.WithTimeout(ctx, searchEmbedTimeout)
	defer cancel()
	vectors, err := m.embedder.Embed(asking, []string{query})
	if err != nil {
		slog.WarnContext(ctx, "search by words alone", "error", err)
		return nil, ctx.Err()
	}
	args := f.named(agent)
	args["model"], args["code"], args["limit"], args["now"] = m.embedder.Model(), embed.Code(vectors[0]), nearest, m.now()
	rows, err := postgres.All[struct {
		Memory int32
		Vector []float32
	}](ctx, m.db, meaningSQL, args)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	all := make(map[int32]float64, len(rows))
	for _, r := range rows {
		all[r.Memory] = meaning(embed.Cosine(vectors[0], r.Vector))
	}
	return all, nil
}

// meaning is how much a cosine says: what two unrelated texts have in common
// says nothing.
func meaning(cosine float64) float64 {
	return max(0, cosine-unrelated) / (1 - unrelated)
}

// remember gives a kept memory its vector, if it can be had now.
func (m memory) remember(ctx context.Context, agent, id, text string) {
	if m.embedder == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, storeEmbedTimeout)
	defer cancel()
	vectors, err := m.embedder.Embed(asking, []string{text})
	if err == nil {
		err = m.keepVector(ctx, agent, id, vectors[0])
	}
	if err != nil {
		slog.WarnContext(ctx, "memory without a vector until the next backfill", "memory", id, "error", err)
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
