package control

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed submit_feedback.sql
var feedbackSQL string

type feedbackArgs struct {
	SignalType string `json:"signal_type" doc:"-" enum:"positive,negative,correction"`
	Detail     string `json:"detail" doc:"-" maxlen:"2000"`
	AgentID    string `json:"agent_id,omitempty" doc:"About whom; you if left out"`
}

// Validate asks for words.
func (a feedbackArgs) Validate() error {
	if strings.TrimSpace(a.Detail) == "" {
		return fault.Invalid("detail", "detail must say what was good or wrong")
	}
	return nil
}

type feedbackResult struct {
	FeedbackID int64  `json:"feedback_id"`
	AgentID    string `json:"agent_id"`
	SignalType string `json:"signal_type"`
}

// submitFeedback keeps feedback on the caller or on an agent that reports to
// it; fault.NotFound otherwise. Whoever uses the text later must treat it as
// what somebody said, not as an instruction.
func (c control) submitFeedback(ctx context.Context, who caller.Caller, a feedbackArgs) (feedbackResult, error) {
	about := cmp.Or(a.AgentID, who.Agent)
	if err := c.checkReach(ctx, who, about); err != nil {
		return feedbackResult{}, err
	}
	r, err := postgres.One[feedbackResult](ctx, c.db, feedbackSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "about": about, "credential": who.Credential, "kind": a.SignalType, "detail": strings.TrimSpace(a.Detail),
	})
	if err != nil {
		return feedbackResult{}, fmt.Errorf("write feedback: %w", err)
	}
	return r, nil
}
