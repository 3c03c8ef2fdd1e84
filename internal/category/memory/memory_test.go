package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// noon is when the tests happen.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func open(db postgres.DB) tool.Category { return memory.New(db, clock) }

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func addAgent(t testing.TB, db execer, agents ...string) {
	t.Helper()
	for _, a := range agents {
		if _, err := db.Exec(t.Context(), `insert into agents (id) values ($1)`, a); err != nil {
			t.Fatal(err)
		}
	}
}

// begin is a test of its own database, the category over it, and the agents'
// first one, "a", calling.
func begin(t *testing.T, agents ...string) (pgx.Tx, tool.Category, caller.Caller) {
	t.Helper()
	t.Parallel()
	db := postgrestest.New(t)
	addAgent(t, db, agents...)
	return db, open(db), tooltest.Who("a")
}

type stored struct {
	MemoryID    string `json:"memory_id"`
	TimesStored int    `json:"times_stored"`
}

type results struct {
	Memories  []memoryFound
	Order     string
	WordsOnly bool `json:"words_only"`
}

type memoryFound struct {
	ID, Content, Layer string
	Tags               []string
	SimilarIDs         []string `json:"similar_ids"`
	Truncated          bool
	Importance         float64
	Score              float64
	Parts              map[string]float64 `json:"score_parts"`
}

type memoryRead struct {
	ID, Content, Layer string
	Tags               []string
	Importance         float64
	TimesStored        int `json:"times_stored"`
}

type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func search(t testing.TB, c tool.Category, agent, query string) results {
	t.Helper()
	return tooltest.OK[results](t, c, tooltest.Who(agent), "memory_search", map[string]any{"query": query, "limit": 100})
}

// contents are what a search for the query finds, best first.
func contents(t testing.TB, c tool.Category, agent, query string) []string {
	t.Helper()
	all := []string{}
	for _, m := range search(t, c, agent, query).Memories {
		all = append(all, m.Content)
	}
	return all
}

// memoryAt is the category at another time.
type memoryAt struct{ tool.Category }

func (m memoryAt) store(t testing.TB, args string) string {
	t.Helper()
	return tooltest.OK[stored](t, m.Category, tooltest.Who("a"), "memory_store", args).MemoryID
}
