// Package memory holds the tools that keep and find what an agent remembers.
//
// Every memory belongs to one agent, the caller, and no argument changes
// that: there is one owner key, in every table and every statement. Content is
// kept as it came, to the byte. The same content twice is one memory, stored
// twice. What is invalidated or quarantined is kept for the record and found
// by no tool.
//
// Search works by words and runs without any extension of PostgreSQL: package
// terms takes texts apart, an inverted index in plain tables holds the terms,
// rank.go puts the candidates in order and says by which weights. How much a
// search reads is bounded by constants (search.go), not by the number of
// memories.
package memory

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
}

// Open is the category over the configured database. It does not wait for the
// database: a connection is made by the first call.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open memory: %w", err)
	}
	c := New(db, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category {
	m := memory{db: db, now: now}
	return tool.Category{Name: "memory", Tools: []tool.Tool{
		tool.Write("memory_store", "Keep a memory. The same content again is the same memory.", m.store, tool.Idempotent),
		tool.Read("memory_search", "Find this agent's memories by words, best first. An empty query lists the latest. Scores are 0 to 1; below 0.3 is a weak match.", m.search),
		tool.Read("memory_read", "Read one memory whole.", m.read),
		tool.Read("memory_fetch_batch", "Read up to 100 memories by id, in the order asked.", m.fetchBatch),
	}}
}

type memory struct {
	db  postgres.DB
	now func() time.Time
}
