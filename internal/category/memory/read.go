package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed read.sql
var readSQL string

type readArgs struct {
	MemoryID string `json:"memory_id" doc:"-" maxlen:"128"`
	sharedArgs
}

// whole is a memory with all that is known of it.
type whole struct {
	ID           string    `json:"id"`
	Content      string    `json:"content"`
	Tags         []string  `json:"tags"`
	Layer        string    `json:"layer"`
	Importance   float32   `json:"importance"`
	Origin       string    `json:"origin"`
	OriginTrust  float32   `json:"origin_trust"`
	CreatedAt    time.Time `json:"created_at"`
	TimesStored  int       `json:"times_stored"`
	LastStoredAt time.Time `json:"last_stored_at"`
	DerivedFrom  []string  `json:"derived_from,omitempty"`

	// Of a fact.
	Subject    string     `json:"subject,omitempty"`
	Predicate  string     `json:"predicate,omitempty"`
	Object     string     `json:"object,omitempty"`
	ValidFrom  *time.Time `json:"valid_from,omitzero"`
	ValidUntil *time.Time `json:"valid_until,omitzero"`

	Supersedes   string `json:"supersedes,omitempty"`
	SupersededBy string `json:"superseded_by,omitempty"`
}

// read gives one memory, also one that was superseded. A foreign id and one that never was are the same to
// the caller.
func (m memory) read(ctx context.Context, who caller.Caller, a readArgs) (whole, error) {
	v, err := m.view(ctx, who, a.sharedArgs)
	if err != nil {
		return whole{}, err
	}
	args := v.named()
	args["id"] = a.MemoryID
	row, err := postgres.One[whole](ctx, m.db, readSQL, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return whole{}, fault.New(fault.NotFound, "no memory %s", a.MemoryID)
	}
	if err != nil {
		return whole{}, fmt.Errorf("read memory: %w", err)
	}
	return row, nil
}
