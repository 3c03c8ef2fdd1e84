// Package control holds the tools that hold agents back.
//
// An emergency stop is a row in Postgres: every door reads it with the next
// call, and it outlives every process. It covers one agent or all of them.
// Any agent may stop itself and those that report to it, directly or through
// others; only an operator may stop everyone or somebody else, and only an
// operator resumes. Stopping needs no approval and is no error when the stop
// is already in force.
//
// The package never lifts a stop on an agent's word, never lifts a second
// stop along with the one that was named, and never tells an agent of others
// than those that report to it.
package control

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

// Open connects to what the tools need.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open control: %w", err)
	}
	c := New(db, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category {
	c := control{db: db, now: now}
	return tool.Category{Name: "control", Tools: []tool.Tool{
		tool.Destroy("emergency_stop", "Halt agents at once: no tool call of theirs runs until an operator resumes.",
			c.emergencyStop, tool.Idempotent, tool.PassesStop),
	}}
}

type control struct {
	db  postgres.DB
	now func() time.Time
}
