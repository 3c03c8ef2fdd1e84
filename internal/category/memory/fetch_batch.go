package memory

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed fetch_batch.sql
var fetchBatchSQL string

const (
	maxBatch = 100
	// batchBytes is how much content one answer carries; an answer has 4 MiB
	// at most, and JSON may double a text.
	batchBytes = 1 << 20
)

type fetchBatchArgs struct {
	IDs             []string `json:"ids" doc:"1 to 100"`
	IncludeMetadata bool     `json:"include_metadata,omitempty" doc:"Add tags, origin, times"`
	sharedArgs
}

func (a fetchBatchArgs) Validate() error {
	if len(a.IDs) < 1 || len(a.IDs) > maxBatch {
		return fault.Invalid("ids", "ids must hold between 1 and %d ids, not %d", maxBatch, len(a.IDs))
	}
	return nil
}

type fetchBatchResult struct {
	Memories []batched `json:"memories"`
	// MissingIDs are ids that name no memory of the caller.
	MissingIDs []string `json:"missing_ids"`
	// RemainingIDs are memories that no longer fit into this answer: ask for
	// them in another call.
	RemainingIDs []string `json:"remaining_ids"`
}

type batched struct {
	ID       string    `json:"id"`
	Content  string    `json:"content"`
	Layer    string    `json:"layer"`
	Metadata *metadata `json:"metadata,omitzero"`
}

type metadata struct {
	Tags         []string  `json:"tags"`
	Importance   float32   `json:"importance"`
	Origin       string    `json:"origin"`
	OriginTrust  float32   `json:"origin_trust"`
	CreatedAt    time.Time `json:"created_at"`
	TimesStored  int       `json:"times_stored"`
	LastStoredAt time.Time `json:"last_stored_at"`
}

// fetchBatch gives memories in the order asked, each id once.
func (m memory) fetchBatch(ctx context.Context, who caller.Caller, a fetchBatchArgs) (fetchBatchResult, error) {
	v, err := m.view(ctx, who, a.sharedArgs)
	if err != nil {
		return fetchBatchResult{}, err
	}
	args := v.named()
	args["ids"] = a.IDs
	rows, err := postgres.All[whole](ctx, m.db, fetchBatchSQL, args)
	if err != nil {
		return fetchBatchResult{}, fmt.Errorf("fetch memories: %w", err)
	}
	var result fetchBatchResult
	present := make(map[string]bool, len(rows))
	size := 0
	for _, row := range rows {
		present[row.ID] = true
		size += len(row.Content)
		if size > batchBytes && len(result.Memories) > 0 {
			result.RemainingIDs = append(result.RemainingIDs, row.ID)
			continue
		}
		result.Memories = append(result.Memories, row.batched(a.IncludeMetadata))
	}
	for _, id := range a.IDs {
		if !present[id] && !slices.Contains(result.MissingIDs, id) {
			result.MissingIDs = append(result.MissingIDs, id)
		}
	}
	return result, nil
}

func (w whole) batched(withMetadata bool) batched {
	b := batched{ID: w.ID, Content: w.Content, Layer: w.Layer}
	if withMetadata {
		b.Metadata = &metadata{Tags: w.Tags, Importance: w.Importance, Origin: w.Origin, OriginTrust: w.OriginTrust,
			CreatedAt: w.CreatedAt, TimesStored: w.TimesStored, LastStoredAt: w.LastStoredAt}
	}
	return b
}
