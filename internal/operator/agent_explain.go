package operator

import (
	"context"
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
)

//go:embed agent_explain.sql
var agentExplainSQL string

type explainArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Tool    string `json:"tool" doc:"Which tool" maxlen:"128"`
	KeyID   string `json:"key_id,omitempty" doc:"With the scopes of this key; left out: as the user of this computer, who has them all" maxlen:"64"`
}

type explanation struct {
	AgentID string   `json:"agent_id"`
	Tool    string   `json:"tool"`
	Allowed bool     `json:"allowed"`
	Step    int      `json:"step,omitzero"` // of the gate's order
	Reason  string   `json:"reason,omitzero"`
	Rule    string   `json:"rule"`
	Changes []string `json:"changes"` // commands that would allow it, all of them needed
	Note    string   `json:"note,omitzero"`
}

// explained is what the gate would read of the agent and the key.
type explained struct {
	AgentID, State               string
	AllowedTools, DeniedTools    []string
	ApprovalRequiredTools        []string
	ScopedTools                  []string
	KeyID, KeyState              string
	Scopes                       []string
	AgentStopped, AllStopped     bool
	AgentStopSince, AllStopSince time.Time
	StopReason                   string
}

// agentExplain asks the gate's own decision, so it cannot tell another story.
func (s *session) agentExplain(ctx context.Context, _ caller.Caller, a explainArgs) (explanation, error) {
	s.about = a.AgentID
	in, err := postgres.One[explained](ctx, s.db, agentExplainSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "key_id": a.KeyID})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		s.about = ""
		return explanation{}, fault.New(fault.NotFound, "no agent %s; agent list shows those there are", short(a.AgentID))
	case err != nil:
		return explanation{}, fmt.Errorf("read agent: %w", err)
	case a.KeyID != "" && in.KeyID == "":
		return explanation{}, fault.New(fault.NotFound, "agent %s has no key %s", a.AgentID, short(a.KeyID))
	}
	e := explanation{AgentID: a.AgentID, Tool: policy.BaseName(a.Tool), Changes: []string{}}
	entry := s.Catalog.Find(e.Tool)
	if entry == nil {
		d := policy.Unknown(e.Tool)
		e.Step, e.Reason, e.Rule = int(d.Step), d.Reason, d.Rule+didYouMean(e.Tool, s.toolNames())
		return e, nil
	}
	d := policy.Decide(in.snapshot(), entry.Tool)
	e.Allowed, e.Step, e.Reason, e.Rule = d.Allowed, int(d.Step), d.Reason, d.Rule
	e.Changes = in.changes(entry)
	if in.KeyID != "" && in.KeyState != "active" {
		e.Allowed, e.Step, e.Reason, e.Rule = false, 1, "key_"+in.KeyState, fmt.Sprintf("key %s is %s", in.KeyID, in.KeyState)
		e.Changes = append([]string{"key create " + in.AgentID}, e.Changes...)
	}
	return e, nil
}

func (in explained) snapshot() policy.Snapshot {
	who := caller.Caller{Agent: in.AgentID, Credential: in.KeyID, Scopes: in.Scopes}
	if in.KeyID == "" {
		who.Credential, who.Scopes = "local", []string{caller.ScopeAll}
	}
	s := policy.Snapshot{Caller: who, Agent: policy.Agent{ID: in.AgentID, State: in.State, Allowed: in.AllowedTools, Denied: in.DeniedTools,
		ApprovalRequired: in.ApprovalRequiredTools, Scoped: in.ScopedTools}}
	switch {
	case in.AllStopped:
		s.Stop = &policy.Stop{Everyone: true, Reason: in.StopReason, Since: in.AllStopSince}
	case in.AgentStopped:
		s.Stop = &policy.Stop{Reason: in.StopReason, Since: in.AgentStopSince}
	}
	return s
}

// changes finds the fewest commands after which the call would be allowed, by
// mending one refusal after another.
func (in explained) changes(entry *catalog.Entry) []string {
	commands := []string{}
	for range 8 { // more than there are steps
		d := policy.Decide(in.snapshot(), entry.Tool)
		if d.Allowed {
			break
		}
		command := in.mend(d, entry)
		if command == "" {
			break
		}
		commands = append(commands, command)
	}
	return commands
}

// mend undoes one refusal in the copy and says how to do it for good.
func (in *explained) mend(d policy.Decision, entry *catalog.Entry) string {
	switch d.Step {
	case policy.StepActive:
		in.State = "active"
		return "agent set " + in.AgentID + " --state active"
	case policy.StepStop:
		if in.AllStopped {
			in.AllStopped = false
			return "resume"
		}
		in.AgentStopped = false
		return "resume " + in.AgentID
	case policy.StepDenied:
		covers := func(p string) bool { return policy.Matches(p, entry.Name) }
		var patterns []string
		for _, p := range in.DeniedTools {
			if covers(p) {
				patterns = append(patterns, quote(p))
			}
		}
		in.DeniedTools = slices.DeleteFunc(slices.Clone(in.DeniedTools), covers)
		return "agent deny " + in.AgentID + " --remove " + strings.Join(patterns, " ")
	case policy.StepAllowed:
		in.AllowedTools = append(slices.Clone(in.AllowedTools), entry.Name)
		return "agent allow " + in.AgentID + " " + entry.Name
	case policy.StepScope:
		return in.mendScope(entry)
	}
	return ""
}

// mendScope asks for another key, because a key's scopes do not change.
func (in *explained) mendScope(entry *catalog.Entry) string {
	scopes := slices.Clone(in.Scopes)
	if who := (caller.Caller{Scopes: scopes}); !who.Allows(entry.Category, entry.Action()) {
		scopes = append(scopes, entry.Category+":"+entry.Action())
	}
	if entry.Scope != "" && !slices.Contains(scopes, entry.Scope) {
		scopes = append(scopes, entry.Scope)
	}
	if in.KeyID == "" {
		in.KeyID, in.KeyState = "new", "active"
		if len(scopes) == 1 { // the scopes of the local user go with the new key
			scopes = append([]string{entry.Category + ":" + entry.Action()}, scopes...)
		}
	}
	in.Scopes = scopes
	command := "key create " + in.AgentID
	for _, scope := range scopes {
		command += " --scope " + quote(scope)
	}
	return command
}

// quote protects a star from the shell.
func quote(text string) string {
	if strings.Contains(text, "*") {
		return `"` + text + `"`
	}
	return text
}
