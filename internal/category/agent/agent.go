// Package agent holds the tools that look at agents: who there is, and how one
// of them is doing.
//
// An agent sees itself and the agents that report to it, directly or through
// others; a credential with the scope operator sees every agent. An agent that
// may not be seen and one that does not exist get the same answer, so that a
// guess tells nothing. That an agent reports to somebody is shown, nothing
// else about a superior is.
//
// The tools read only. They never show a key, its hash or its first
// characters, the arguments of a call, the imported source of an agent, or
// its capability lists: a refused tool and an unknown one must stay alike.
package agent

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
		return tool.Category{}, fmt.Errorf("open agent: %w", err)
	}
	c := New(db, time.Now)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category {
	a := agent{db: db, now: now}
	return tool.Category{Name: "agent", Tools: []tool.Tool{
		tool.Read("list_agents", "List yourself and the agents that report to you.", a.list),
		tool.Read("agent_status", "Tell how one agent is doing: state, emergency stop, last calls and errors.", a.status),
	}}
}

type agent struct {
	db  postgres.DB
	now func() time.Time
}
