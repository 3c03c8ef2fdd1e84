package control

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

//go:embed tool_preflight.sql
var preflightSQL string

type preflightArgs struct {
	Tools     []string               `json:"tools" doc:"-"`
	Arguments map[string]tool.Object `json:"arguments,omitempty" doc:"By tool, where rules look at them"`
}

// maxPreflight is how many tools one call asks about.
const maxPreflight = 200

// Validate bounds the question.
func (a preflightArgs) Validate() error {
	if len(a.Tools) == 0 || len(a.Tools) > maxPreflight {
		return fault.Invalid("tools", "tools must name 1 to %d tools", maxPreflight)
	}
	for name := range a.Arguments {
		if !slices.Contains(a.Tools, name) {
			return fault.Invalid("arguments", "arguments has %s, which is not in tools", short(name))
		}
	}
	return nil
}

type preflightResult struct {
	Tools []readiness `json:"tools"`
}

// readiness is what the gate would answer. The states: ready, needs_approval,
// needs_grant, denied (by a rule or a person), over_limit, stopped, edition,
// invalid (broken arguments), unknown (there is no such tool for the caller).
type readiness struct {
	Tool         string `json:"tool"`
	State        string `json:"state"`
	Detail       string `json:"detail,omitzero"`
	ApprovalID   string `json:"approval_id,omitzero"`
	RetryAfterMS int64  `json:"retry_after_ms,omitzero"`
}

// toolPreflight asks the gate's own decision for each tool, and changes
// nothing: no token is taken, no approval filed or used.
func (c control) toolPreflight(ctx context.Context, who caller.Caller, a preflightArgs) (preflightResult, error) {
	tools, err := c.Catalog()
	if err != nil {
		return preflightResult{}, err
	}
	result := preflightResult{Tools: []readiness{}}
	seen := peeked{control: c, who: who, of: map[tool.Class]policy.Snapshot{}}
	for _, name := range a.Tools {
		r := readiness{Tool: name, State: "unknown"}
		if entry := tools.Find(policy.BaseName(name)); entry != nil {
			s, err := seen.standing(ctx, entry)
			if err != nil {
				return preflightResult{}, err
			}
			arguments, given := a.Arguments[name]
			if r, err = c.ready(ctx, s, entry, arguments, given); err != nil {
				return preflightResult{}, err
			}
		}
		r.Tool = short(name)
		result.Tools = append(result.Tools, r)
	}
	return result, nil
}

// ready walks the gate's steps for one tool.
func (c control) ready(ctx context.Context, s policy.Snapshot, entry *catalog.Entry, arguments []byte, given bool) (readiness, error) {
	if d := policy.Listed(s, entry.Tool); d.Hidden() { // also while a stop is in force
		return refusal(d), nil
	}
	if d := policy.Decide(s, entry.Tool); !d.Allowed {
		return refusal(d), nil
	}
	normal, err := entry.Schema().Normalize(arguments)
	if given && err != nil {
		return readiness{State: "invalid", Detail: err.Error()}, nil
	}
	note := ""
	if !given {
		s.Agent.Rules, note = unconditional(s.Agent.Rules, entry.Name)
	}
	d, because := policy.Weigh(s, entry.Tool, normal)
	if !d.Allowed {
		return refusal(d), nil
	}
	if d := policy.Limited(s, entry.Tool); !d.Allowed {
		return refusal(d), nil
	}
	switch {
	case because == "":
		return readiness{State: "ready", Detail: note}, nil
	case !given:
		return readiness{State: "needs_approval", Detail: because + ": a person must approve"}, nil
	}
	return c.approved(ctx, s, entry, normal, because)
}

// unconditional are the rules that can be weighed without arguments.
func unconditional(rules []policy.Rule, name string) (bare []policy.Rule, note string) {
	for _, r := range rules {
		switch {
		case len(r.When) == 0:
			bare = append(bare, r)
		case policy.Matches(r.Tool, name):
			note = "its rules look at the arguments; give them to be sure"
		}
	}
	return bare, note
}

// approved looks whether a person has decided this very call already.
func (c control) approved(ctx context.Context, s policy.Snapshot, entry *catalog.Entry, arguments []byte, because string) (readiness, error) {
	hash := sha256.Sum256(arguments)
	found, err := postgres.All[struct{ ID, State, Reason string }](ctx, c.db, preflightSQL, pgx.StrictNamedArgs{
		"agent": s.Agent.ID, "tool": entry.Name, "definition": entry.Fingerprint(), "hash": hash[:], "arguments": string(arguments),
	})
	switch {
	case err != nil:
		return readiness{}, fmt.Errorf("look for approval: %w", err)
	case len(found) == 0:
		return readiness{State: "needs_approval", Detail: because + ": a person must approve"}, nil
	}
	switch a := found[0]; a.State {
	case "approved":
		return readiness{State: "ready", Detail: "it is approved", ApprovalID: a.ID}, nil
	case "pending":
		return readiness{State: "needs_approval", Detail: "it waits for a person", ApprovalID: a.ID}, nil
	default:
		return readiness{State: "denied", Detail: strings.TrimSuffix("it was not approved: "+a.Reason, ": "), ApprovalID: a.ID}, nil
	}
}

// refusal words a decision of the gate: what it hides stays hidden.
func refusal(d policy.Decision) readiness {
	if d.Hidden() || d.Fault == nil {
		return readiness{State: "unknown"}
	}
	r := readiness{State: "denied", Detail: d.Fault.Message, RetryAfterMS: d.Fault.RetryAfter.Round(time.Millisecond).Milliseconds()}
	switch d.Step {
	case policy.StepStop:
		r.State = "stopped"
	case policy.StepEdition:
		r.State = "edition"
	case policy.StepGrant:
		r.State = "needs_grant"
	case policy.StepFlood, policy.StepLimit:
		r.State = "over_limit"
	}
	return r
}

// peeked reads a standing once for all tools that share it: tools of one rate
// class do, unless they need a grant.
type peeked struct {
	control
	who caller.Caller
	of  map[tool.Class]policy.Snapshot
}

func (p peeked) standing(ctx context.Context, entry *catalog.Entry) (policy.Snapshot, error) {
	scoped := func(pattern string) bool { return policy.Matches(pattern, entry.Name) }
	if s, ok := p.of[entry.Class]; ok && !slices.ContainsFunc(s.Agent.Scoped, scoped) {
		return s, nil
	}
	s, err := p.peek(ctx, p.who, entry)
	if err == nil {
		p.of[entry.Class] = s
	}
	return s, err
}

// peek is the caller's standing for one tool, with nothing taken.
func (c control) peek(ctx context.Context, who caller.Caller, entry *catalog.Entry) (policy.Snapshot, error) {
	s, err := standing.NewReader(c.db).Peek(ctx, standing.Who{Agent: who.Agent, Credential: who.Credential, Scopes: who.Scopes}, &entry.Definition)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, fault.New(fault.NotFound, "no agent %s any more", who.Agent)
	case err != nil:
		return s, fmt.Errorf("read standing: %w", err)
	}
	s.Edition = c.Edition(c.now())
	return s, nil
}
