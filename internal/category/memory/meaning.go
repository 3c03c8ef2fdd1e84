package memory

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
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

// How many memories a search compares by meaning: all of them by their whole
// vectors, in the server where it has pgvector; of more than that, those whose
// codes are most alike. And so many at most are in the final order.
const (
	compared = 1000
	nearest  = 120
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
	args["model"], args["code"], args["compared"], args["now"] = m.embedder.Model(), embed.Code(vector), compared, m.now()
	var alike []likeness
	if far {
		args["vector"], args["limit"] = vector, nearest
		alike, err = postgres.All[likeness](ctx, m.db, meaningPgvectorSQL, args)
	} else {
		alike, err = m.compare(ctx, vector, args)
	}
	all := make(map[int32]float64, len(alike))
	for _, l := range alike {
		all[l.Memory] = meaning(l.Cosine)
	}
	return all, err
}

// likeness is how alike a memory is to a query.
type likeness struct {
	Memory int32
	Cosine float64
}

// compare gives the memories that are most alike to a vector, for servers that
// cannot compare vectors.
func (m memory) compare(ctx context.Context, vector []float32, args pgx.StrictNamedArgs) ([]likeness, error) {
	rows, err := postgres.All[struct {
		Memory int32
		Vector []float32
	}](ctx, m.db, meaningSQL, args)
	alike := make([]likeness, len(rows))
	for i, r := range rows {
		alike[i] = likeness{r.Memory, embed.Cosine(vector, r.Vector)}
	}
	slices.SortFunc(alike, func(a, b likeness) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(b.Memory, a.Memory))
	})
	return alike[:min(len(alike), nearest)], err
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
