package control

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/decision"
	"pawgate/internal/postgres"
)

//go:embed decision_list.sql
var decisionListSQL string

type decisionListArgs struct {
	Limit int `json:"limit,omitempty" doc:"10 if left out" min:"1" max:"50"`
}

type decisionListResult struct {
	Decisions []openDecision `json:"decisions"`
}

type openDecision struct {
	DecisionID string            `json:"decision_id"`
	Question   string            `json:"question"`
	Options    []decision.Option `json:"options"`
	CreatedAt  time.Time         `json:"created_at"`
	ExpiresAt  time.Time         `json:"expires_at"`
}

// decisionList shows the caller's own open choices.
func (c control) decisionList(ctx context.Context, who caller.Caller, a decisionListArgs) (decisionListResult, error) {
	open, err := postgres.All[openDecision](ctx, c.db, decisionListSQL, pgx.StrictNamedArgs{"agent": who.Agent, "limit": cmp.Or(a.Limit, 10)})
	if err != nil {
		return decisionListResult{}, fmt.Errorf("list decisions: %w", err)
	}
	return decisionListResult{Decisions: open}, nil
}
