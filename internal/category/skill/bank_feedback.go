package skill

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed bank_feedback.sql
var bankFeedbackSQL string

type bankFeedbackArgs struct {
	SkillID string `json:"skill_id" doc:"Or a section_id" maxlen:"128"`
	Success bool   `json:"success" doc:"-"`
	Note    string `json:"note,omitempty" doc:"What was good or bad" maxlen:"2000"`
}

type bankFeedbackResult struct {
	FeedbackID int64  `json:"feedback_id"`
	SkillID    string `json:"skill_id"`
	SkillName  string `json:"skill_name"`
	Version    int    `json:"version"`
	trials
}

// bankFeedback keeps how working by a skill went, and says what is known of its
// version by now. It fails with fault.NotFound for a skill that the caller does
// not work by.
func (k skills) bankFeedback(ctx context.Context, who caller.Caller, a bankFeedbackArgs) (bankFeedbackResult, error) {
	row, err := postgres.One[struct {
		ID           int64
		SkillID      string
		SkillName    string
		Version      int
		Trials, Good int
	}](ctx, k.db, bankFeedbackSQL, pgx.StrictNamedArgs{"agent": who.Agent, "credential": who.Credential, "id": a.SkillID,
		"success": a.Success, "note": a.Note, "now": k.now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return bankFeedbackResult{}, fault.New(fault.NotFound, "no skill or section %s that you work by; skill_bank_search and skill_list show their ids", cut(a.SkillID, 128))
	}
	if err != nil {
		return bankFeedbackResult{}, fmt.Errorf("keep feedback: %w", err)
	}
	return bankFeedbackResult{row.ID, row.SkillID, row.SkillName, row.Version, newTrials(row.Trials, row.Good)}, nil
}
