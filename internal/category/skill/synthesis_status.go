package skill

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

var (
	//go:embed runs.sql
	runsSQL string
	//go:embed drafts.sql
	draftsSQL string
)

type synthesisStatusArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Default: you" maxlen:"64"`
}

type synthesisStatusResult struct {
	AgentID string `json:"agent_id"`
	Model   bool   `json:"model_configured"`
	Waiting int    `json:"waiting_candidates"` // of the last 7 days, without a skill
	Runs    []run  `json:"runs"`               // newest first
	Skills  []born `json:"skills"`             // written from experience, newest first
}

type run struct {
	RunID        string     `json:"run_id"`
	StartedAt    time.Time  `json:"started_at"`
	EndedAt      *time.Time `json:"ended_at"` // null: it is under way, or broke off
	LookbackDays int        `json:"lookback_days"`
	Model        string     `json:"model"`
	Outcomes     []outcome  `json:"outcomes"`
}

// born is a skill that was written by a run.
type born struct {
	SkillID     string    `json:"skill_id"`
	SkillName   string    `json:"skill_name"`
	CandidateID string    `json:"candidate_id"`
	State       string    `json:"state"`
	Uses        int64     `json:"uses"`
	MadeAt      time.Time `json:"made_at"`
	Graduated   string    `json:"graduated_as,omitzero"` // the global skill
	trials
}

// synthesisStatus tells of the runs for an agent, and how what they wrote does.
func (k skills) synthesisStatus(ctx context.Context, who caller.Caller, a synthesisStatusArgs) (synthesisStatusResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return synthesisStatusResult{}, err
	}
	r := synthesisStatusResult{AgentID: agent, Model: k.model != nil, Skills: []born{}}
	if r.Runs, err = postgres.All[run](ctx, k.db, runsSQL, pgx.StrictNamedArgs{"agent": agent}); err != nil {
		return r, fmt.Errorf("list runs: %w", err)
	}
	rows, err := postgres.All[struct {
		SkillID, SkillName, CandidateID, State string
		Uses                                   int64
		MadeAt                                 time.Time
		Graduated                              string
		Trials, Good                           int
	}](ctx, k.db, draftsSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return r, fmt.Errorf("list written skills: %w", err)
	}
	for _, s := range rows {
		r.Skills = append(r.Skills, born{s.SkillID, s.SkillName, s.CandidateID, s.State, s.Uses, s.MadeAt, s.Graduated, newTrials(s.Trials, s.Good)})
	}
	all, err := k.candidates(ctx, agent, 7)
	for _, c := range all {
		if c.SkillID == "" {
			r.Waiting++
		}
	}
	return r, err
}
