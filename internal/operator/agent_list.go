package operator

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed agent_list.sql
var agentListSQL string

type agentListArgs struct {
	All   bool   `json:"all,omitempty" doc:"Show archived agents too"`
	Limit int    `json:"limit,omitempty" doc:"Most agents to show; 200 if left out" min:"1" max:"1000"`
	After string `json:"after,omitempty" doc:"Go on after this agent" maxlen:"64"`
}

type agentLine struct {
	AgentID    string     `json:"agent_id"`
	State      string     `json:"state"`
	Stopped    bool       `json:"stopped"`
	Role       string     `json:"role"`
	ReportsTo  string     `json:"reports_to"`
	Allowed    []string   `json:"allowed_tools"`
	Denied     []string   `json:"denied_tools"`
	Keys       int        `json:"keys"`
	LastUsedAt *time.Time `json:"last_used_at,omitzero"`
}

type agentListResult struct {
	Agents []agentLine `json:"agents"`
	Next   string      `json:"next_after,omitzero"`
}

func (s *session) agentList(ctx context.Context, _ caller.Caller, a agentListArgs) (agentListResult, error) {
	limit := cmp.Or(a.Limit, 200)
	lines, err := postgres.All[agentLine](ctx, s.db, agentListSQL, pgx.StrictNamedArgs{
		"all": a.All, "after": a.After, "limit": limit + 1, "now": s.Now(),
	})
	if err != nil {
		return agentListResult{}, fmt.Errorf("list agents: %w", err)
	}
	if len(lines) <= limit {
		return agentListResult{Agents: lines}, nil
	}
	return agentListResult{Agents: lines[:limit], Next: lines[limit-1].AgentID}, nil
}
