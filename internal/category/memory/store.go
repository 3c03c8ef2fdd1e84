package memory

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed store.sql
var storeSQL string

type storeArgs struct {
	Content    string   `json:"content" doc:"What to remember, in full; kept as it is" maxlen:"1048576"`
	Tags       []string `json:"tags,omitempty" doc:"Up to 32 short labels"`
	Layer      string   `json:"layer,omitempty" doc:"What sort of memory; judged from the content if left out" enum:"episodic,semantic,procedural"`
	Importance float64  `json:"importance,omitempty" doc:"1 to 10; judged from the content if left out" min:"1" max:"10"`
}

func (a storeArgs) Validate() error {
	if strings.TrimSpace(a.Content) == "" {
		return fault.Invalid("content", "content must not be blank")
	}
	return validateTags(a.Tags)
}

type storeResult struct {
	MemoryID    string    `json:"memory_id"`
	StoredAt    time.Time `json:"stored_at"`
	TimesStored int       `json:"times_stored"`
}

// store keeps a memory of the caller. It answers only after the row is
// committed. Content that the agent already has is not stored twice: the
// answer names the memory that has it.
func (m memory) store(ctx context.Context, who caller.Caller, a storeArgs) (storeResult, error) {
	id := newID(m.now())
	tags := cleanTags(a.Tags)
	layer, importance := judge(a.Content, a.Layer, a.Importance)
	ix := indexOf(who.Agent, a.Content, tags)
	row, err := postgres.One[struct {
		ID          string
		StoredAt    time.Time
		TimesStored int
	}](ctx, m.db, storeSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "id": id, "content": a.Content, "digest": digest(a.Content),
		"layer": layer, "importance": importance, "tags": tags, "now": m.now(),
		"origin": originAgent, "origin_trust": trustCeiling(originAgent),
		"terms": ix.terms, "weights": ix.weights, "terms_version": ix.version,
	})
	if err != nil {
		return storeResult{}, fmt.Errorf("store memory: %w", err)
	}
	return storeResult{MemoryID: row.ID, StoredAt: row.StoredAt, TimesStored: row.TimesStored}, nil
}
