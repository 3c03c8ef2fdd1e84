package skill

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/store"
	"pawgate/internal/usage"
)

var (
	//go:embed run_begin.sql
	runBeginSQL string
	//go:embed run_end.sql
	runEndSQL string
	//go:embed candidate_done.sql
	candidateDoneSQL string
	//go:embed agent_model.sql
	agentModelSQL string
)

type synthesisArgs struct {
	AgentID      string `json:"agent_id,omitempty" doc:"Default: you" maxlen:"64"`
	DryRun       *bool  `json:"dry_run,omitempty" doc:"Default true"`
	LookbackDays int    `json:"lookback_days,omitempty" doc:"Default 7" min:"1" max:"90"`
	CandidateID  string `json:"candidate_id,omitempty" doc:"Only this, or a gap_id" maxlen:"64"`
	Limit        int    `json:"limit,omitempty" doc:"Skills to write; default 1" min:"1" max:"5"`
}

func (a synthesisArgs) dry() bool { return a.DryRun == nil || *a.DryRun }

type synthesisResult struct {
	RunID      string      `json:"run_id,omitzero"`
	DryRun     bool        `json:"dry_run"`
	AgentID    string      `json:"agent_id"`
	HasModel   bool        `json:"model_configured"`
	Candidates []candidate `json:"candidates"`
	Outcomes   []outcome   `json:"outcomes,omitempty"`
}

// outcome is what became of one candidate: written (a draft, to be tried),
// rejected (by the format or the scan), failed (no answer of the model).
type outcome struct {
	CandidateID string `json:"candidate_id"`
	State       string `json:"state"`
	SkillID     string `json:"skill_id,omitzero"`
	SkillName   string `json:"skill_name,omitzero"`
	Risk        string `json:"risk,omitzero"`
	Detail      string `json:"detail,omitzero"`
}

// noSuchCandidate words a candidate that is not there.
func noSuchCandidate(id string, days int) error {
	return fault.New(fault.NotFound, "no candidate or gap %s in the last %d days; a dry run and skill_gaps show those there are", id, days)
}

// synthesisRun finds what an agent did or needed more than once and, if asked,
// has a model write a skill for it. What is written is a draft of that agent:
// checked and scanned like any skill, and every agent's only after skill_graduate.
func (k skills) synthesisRun(ctx context.Context, who caller.Caller, a synthesisArgs) (synthesisResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return synthesisResult{}, err
	}
	days := cmp.Or(a.LookbackDays, 7)
	all, err := k.candidates(ctx, agent, days)
	if err != nil {
		return synthesisResult{}, err
	}
	r := synthesisResult{DryRun: a.dry(), AgentID: agent, HasModel: k.model != nil, Candidates: []candidate{}}
	for _, c := range all {
		if a.CandidateID == "" && len(r.Candidates) < mostFound || c.CandidateID == a.CandidateID {
			r.Candidates = append(r.Candidates, c)
		}
	}
	switch {
	case a.CandidateID != "" && len(r.Candidates) == 0:
		return synthesisResult{}, noSuchCandidate(a.CandidateID, days)
	case a.dry():
		return r, nil
	case k.model == nil:
		return synthesisResult{}, fault.New(fault.NotConfigured, "writing a skill needs a model, and none is configured: the operator sets PAWGATE_CHAT_URL and PAWGATE_CHAT_MODEL; dry_run true shows the candidates without one")
	}
	model, err := k.modelOf(ctx, agent)
	if err != nil {
		return synthesisResult{}, err
	}
	return k.write(ctx, who, a, r, model, days)
}

// modelOf is the agent's own model, else the configured one.
func (k skills) modelOf(ctx context.Context, agent string) (string, error) {
	row, err := postgres.One[struct{ Model string }](ctx, k.db, agentModelSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return "", fmt.Errorf("read agent: %w", err)
	}
	model := cmp.Or(row.Model, k.modelName)
	if model == "" {
		return "", fault.New(fault.NotConfigured, "which model writes skills? The operator sets PAWGATE_CHAT_MODEL, or the agent's own")
	}
	return model, nil
}

// reserve is the time that keeping a result takes at most.
const reserve = 5 * time.Second

// write goes through the candidates that have no skill yet. The run is on
// record before the model is asked, and each skill as soon as it is kept.
func (k skills) write(ctx context.Context, who caller.Caller, a synthesisArgs, r synthesisResult, model string, days int) (synthesisResult, error) {
	r.RunID = store.NewID("r")
	if _, err := postgres.Exec(ctx, k.db, runBeginSQL, pgx.StrictNamedArgs{"id": r.RunID, "agent": r.AgentID, "now": k.now(), "days": days, "model": model}); err != nil {
		return r, fmt.Errorf("begin run: %w", err)
	}
	r.Outcomes = []outcome{}
	for _, c := range r.Candidates {
		if len(r.Outcomes) == cmp.Or(a.Limit, 1) {
			break
		}
		if c.SkillID != "" {
			continue
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*reserve {
			break // the rest is for another run
		}
		o, err := k.writeOne(ctx, who, r.AgentID, model, c)
		if err != nil {
			return r, err
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	encoded, err := json.Marshal(r.Outcomes)
	if err != nil {
		return r, fmt.Errorf("encode outcomes: %w", err)
	}
	if _, err := postgres.Exec(ctx, k.db, runEndSQL, pgx.StrictNamedArgs{"id": r.RunID, "agent": r.AgentID, "now": k.now(), "outcomes": string(encoded)}); err != nil {
		return r, fmt.Errorf("end run: %w", err)
	}
	return r, nil
}

// attempts is how often the model may mend what breaks the format.
const attempts = 2

func (k skills) writeOne(ctx context.Context, who caller.Caller, agent, model string, c candidate) (outcome, error) {
	o := outcome{CandidateID: c.CandidateID, State: "failed"}
	messages := []chat.Message{{Role: chat.User, Text: prompt(c)}}
	for range attempts {
		answer, err := k.ask(ctx, agent, chat.Request{Model: model, System: writerSystem, Messages: messages, MaxTokens: 6000})
		if err != nil {
			var said *chat.Error
			if !errors.As(err, &said) {
				return o, err
			}
			o.Detail = "the model did not answer: " + said.Text
			return o, nil
		}
		text := unfence(answer.Text)
		files := []format.File{{Path: format.Main, Content: []byte(text)}}
		s, problems := format.Parse("", files)
		if broken := problems.Broken(); len(broken) > 0 {
			o.State, o.Detail = "rejected", "what the model wrote breaks the format: "+broken.Error()
			messages = append(messages, chat.Message{Role: chat.Assistant, Text: answer.Text},
				chat.Message{Role: chat.User, Text: "That breaks the format: " + broken.Error() + ". Write the whole SKILL.md again."})
			continue
		}
		return k.keepWritten(ctx, who, agent, c, s)
	}
	return o, nil
}

// keepWritten keeps a draft and that the candidate has one.
func (k skills) keepWritten(ctx context.Context, who caller.Caller, agent string, c candidate, s format.Skill) (outcome, error) {
	o := outcome{CandidateID: c.CandidateID, SkillName: s.Name}
	err := postgres.InTx(ctx, k.db, func(tx pgx.Tx) error {
		kept, err := store.Keep(ctx, tx, store.Draft{Scope: store.Agent, Agent: agent, Skill: s, Lineage: "synthesis:" + c.CandidateID, State: "draft", By: who.Agent, Now: k.now()})
		o.Risk = kept.Verdict.Risk
		if err != nil {
			return err
		}
		o.State, o.SkillID = "written", kept.ID
		_, err = postgres.Exec(ctx, tx, candidateDoneSQL, pgx.StrictNamedArgs{"agent": agent, "candidate": c.CandidateID, "skill": kept.ID, "now": k.now()})
		return err
	})
	if f, ok := fault.Of(err); ok && (f.Reason == store.Unsafe || f.Reason == fault.Conflict || f.Reason == store.Pinned) {
		o.State, o.SkillID, o.Detail = "rejected", "", f.Message
		return o, nil
	}
	return o, err
}

// ask asks the model and records what it took.
func (k skills) ask(ctx context.Context, agent string, q chat.Request) (chat.Completion, error) {
	within := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	answer, err := k.model.Complete(within, q)
	if err != nil {
		if ctx.Err() == nil && within.Err() != nil {
			return answer, &chat.Error{Text: "it took too long"}
		}
		return answer, err
	}
	u := answer.Usage
	_, err = usage.Record(context.WithoutCancel(ctx), k.db, usage.Row{At: k.now(), Agent: agent, RequestType: usage.Evolution, Provider: k.model.Provider(), Model: cmp.Or(answer.Model, q.Model),
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite5m, CacheWrite1: u.CacheWrite1h, Reasoning: min(u.Reasoning, u.Output),
		Source: usage.SourceLoop, ID: "skill:" + cmp.Or(answer.ID, store.NewID("u"))})
	if err != nil {
		return answer, fmt.Errorf("record usage: %w", err)
	}
	return answer, nil
}
