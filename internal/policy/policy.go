// Package policy decides what an agent may call. It is pure: a decision is a
// function of the snapshot that one statement read from Postgres and of the
// tool, so every door (HTTP, stdio, the model loop) decides alike and the same
// code can explain a decision afterwards.
package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Agent is the part of an agent's row that decisions depend on.
type Agent struct {
	ID    string
	State string // active, paused or archived
	// Allowed and Denied hold patterns: an exact tool name, "memory_*" or
	// "*". An empty Allowed means none.
	Allowed, Denied []string
	// ApprovalRequired and Scoped hold patterns of tools that need more than
	// the lists before they run.
	ApprovalRequired, Scoped []string
}

// Stop is an emergency stop in force.
type Stop struct {
	Everyone bool // it covers every agent, not only this one
	Reason   string
	Since    time.Time
}

// Snapshot is everything a decision depends on besides the tool.
type Snapshot struct {
	Agent  Agent
	Caller caller.Caller
	Stop   *Stop
}

// Tool is a tool as the catalogue knows it.
type Tool struct {
	tool.Definition
	Category string
}

// Step is where in the gate's order a call was refused.
type Step int

// The gate's order. Steps 5 to 8 answer alike, so that an agent cannot learn
// from a refusal which tools exist.
const (
	StepActive  Step = 2
	StepStop    Step = 3
	StepKnown   Step = 5
	StepDenied  Step = 6
	StepAllowed Step = 7
	StepScope   Step = 8
	StepEdition Step = 9
)

// Decision is the outcome for one tool, with the rule that decided.
type Decision struct {
	Allowed bool
	Step    Step
	Reason  string // stable token for the audit row
	Rule    string // the deciding rule in words, for "agent explain"
	// Fault is what the caller is told; nil for the steps that answer
	// "unknown tool" and for an allowed call.
	Fault *fault.Fault
}

// Hidden reports whether the refusal must look like an unknown tool.
func (d Decision) Hidden() bool { return !d.Allowed && d.Step >= StepKnown && d.Step <= StepScope }

func refused(step Step, reason, rule string, args ...any) Decision {
	return Decision{Step: step, Reason: reason, Rule: fmt.Sprintf(rule, args...)}
}

// Unknown is the decision for a name that no tool has.
func Unknown(name string) Decision {
	return refused(StepKnown, "unknown_tool", "no tool is named %q", name)
}

// Decide applies the steps of the gate that need no arguments.
func Decide(s Snapshot, t Tool) Decision {
	if d := standing(s, t); d.Step != 0 {
		return d
	}
	return Listed(s, t)
}

// standing is whether the agent may call anything now (steps 2 and 3).
func standing(s Snapshot, t Tool) Decision {
	if s.Agent.State != "active" {
		d := refused(StepActive, "agent_inactive", "agent %s is %s", s.Agent.ID, s.Agent.State)
		d.Fault = fault.New("agent_inactive", "agent %s is %s; an operator can activate it", s.Agent.ID, s.Agent.State)
		return d
	}
	if s.Stop != nil && !t.Exempt {
		return stopped(s)
	}
	return Decision{}
}

func stopped(s Snapshot) Decision {
	whom := "agent " + s.Agent.ID
	if s.Stop.Everyone {
		whom = "every agent"
	}
	d := refused(StepStop, "stopped", "an emergency stop covers %s since %s", whom, s.Stop.Since.UTC().Format(time.RFC3339))
	text := fmt.Sprintf("an emergency stop covers %s since %s", whom, s.Stop.Since.UTC().Format(time.RFC3339))
	if s.Stop.Reason != "" {
		text += " (" + s.Stop.Reason + ")"
	}
	d.Fault = fault.New(fault.Stopped, "%s; only an operator can resume", text)
	return d
}

// Listed applies steps 5 to 9: exactly the tools that pass are shown by
// tools/list.
func Listed(s Snapshot, t Tool) Decision {
	if pattern, ok := match(s.Agent.Denied, t.Name); ok {
		return refused(StepDenied, "denied", "denied_tools of agent %s has %q", s.Agent.ID, pattern)
	}
	pattern, ok := match(s.Agent.Allowed, t.Name)
	if !ok {
		return refused(StepAllowed, "not_allowed", "allowed_tools of agent %s has no pattern for %s", s.Agent.ID, t.Name)
	}
	if !s.Caller.Allows(t.Category, t.Action()) {
		return refused(StepScope, "scope", "credential %s lacks the scope %s:%s", s.Caller.Credential, t.Category, t.Action())
	}
	if t.Scope != "" && !s.Caller.HasScope(t.Scope) {
		return refused(StepScope, "scope", "credential %s lacks the scope %s", s.Caller.Credential, t.Scope)
	}
	return Decision{Allowed: true, Rule: fmt.Sprintf("allowed_tools of agent %s has %q", s.Agent.ID, pattern)}
}

// match finds the first pattern that covers a tool's name.
func match(patterns []string, name string) (string, bool) {
	i := slices.IndexFunc(patterns, func(p string) bool { return Matches(p, name) })
	if i < 0 {
		return "", false
	}
	return patterns[i], true
}

// Matches reports whether a pattern covers a tool's name: "*", "memory_*", or
// the name itself. Case and white space count.
func Matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// BaseName strips one "mcp__<server>__" qualifier, which clients put before a
// tool's name. Nothing else is folded: a nested or malformed qualifier, another
// case or a look-alike stays what it is, an unknown name.
func BaseName(name string) string {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return name
	}
	server, base, ok := strings.Cut(rest, "__")
	if !ok || server == "" || strings.Contains(base, "__") {
		return name
	}
	return base
}
