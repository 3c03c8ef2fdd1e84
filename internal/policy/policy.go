// Package policy decides what an agent may call. It is pure: a decision is a
// function of the snapshot that one statement read from Postgres and of the
// tool, so every door (HTTP, stdio, the model loop) decides alike and the same
// code can explain a decision afterwards.
package policy

import (
	"cmp"
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
	// ApprovalRequired holds patterns of tools that a person must approve,
	// Scoped of tools that need a live grant.
	ApprovalRequired, Scoped []string
	Rules                    []Rule
	Approver                 Approver
	ApprovalLife             time.Duration
}

// Approver is who may approve an agent's calls.
type Approver string

// The approvers. Whoever sits at the client is asked there, where the client
// can ask; everybody else waits for an operator. Nobody refuses at once.
const (
	ByOperator Approver = "operator"
	ByClient   Approver = "client"
	ByNobody   Approver = "none"
)

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
	// Edition is what the licence of this installation pays for.
	Edition tool.Edition
	// Within narrows what the agent may call, as Allowed does, for one run of it;
	// nil: it is not narrowed.
	Within []string
	// Granted says that a grant for the tool in question is alive.
	Granted bool
	// FloodWait and ClassWait are how long until the credential's and the tool
	// class's bucket has a token; zero when one was taken.
	FloodWait, ClassWait time.Duration
	// Money is what the tool costs and whether there is any left for it; nil
	// where it costs nothing and no budget covers it.
	Money *Money
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
	StepActive   Step = 2
	StepStop     Step = 3
	StepFlood    Step = 4
	StepKnown    Step = 5
	StepDenied   Step = 6
	StepAllowed  Step = 7
	StepScope    Step = 8
	StepEdition  Step = 9
	StepRules    Step = 11
	StepGrant    Step = 12
	StepLimit    Step = 14
	StepApproval Step = 15
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

// Decide applies the steps of the gate that need no arguments (2 to 9).
func Decide(s Snapshot, t Tool) Decision {
	if d := Standing(s, t.Exempt); d.Step != 0 {
		return d
	}
	return Listed(s, t)
}

// Standing is whether the agent may call anything now (steps 2 to 4). It comes
// before the tool's name is looked up, so that a stop tells nothing of which
// tools there are; exempt is the one tool that passes it.
func Standing(s Snapshot, exempt bool) Decision {
	if s.Agent.State != "active" {
		d := refused(StepActive, "agent_inactive", "agent %s is %s", s.Agent.ID, s.Agent.State)
		d.Fault = fault.New("agent_inactive", "agent %s is %s; an operator can activate it", s.Agent.ID, s.Agent.State)
		return d
	}
	if s.Stop != nil && !exempt {
		return stopped(s)
	}
	return Flooded(s)
}

// Flooded is whether the credential sends more than it may (step 4). It holds
// for every request, not only for calls.
func Flooded(s Snapshot) Decision {
	if s.FloodWait <= 0 {
		return Decision{}
	}
	return limited(StepFlood, "flood", s.FloodWait, "the credential sends too many requests")
}

func limited(step Step, reason string, wait time.Duration, what string) Decision {
	d := refused(step, reason, "%s; the next is free in %s", what, wait.Round(time.Millisecond))
	d.Fault = fault.Retry(fault.RateLimited, wait, "rate limit exceeded: %s; try again in %s", what, seconds(wait))
	return d
}

// seconds rounds a wait up, so that whoever obeys it does not come too early.
func seconds(wait time.Duration) string {
	return fmt.Sprintf("%d s", int((wait+time.Second-1)/time.Second))
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

// Lists reports whether tools/list shows a tool: whether it passes steps 5 to 9.
func Lists(s Snapshot, t *Tool) bool {
	step, _ := place(&s, t)
	return step == 0
}

// place is the step of 5 to 9 that refuses a tool, or none, and the pattern
// that decided.
func place(s *Snapshot, t *Tool) (Step, string) {
	if pattern, ok := match(s.Agent.Denied, t.Name); ok {
		return StepDenied, pattern
	}
	pattern, ok := match(s.Agent.Allowed, t.Name)
	switch {
	case !ok, s.Within != nil && !covers(s.Within, t.Name):
		return StepAllowed, pattern
	case !s.Caller.Allows(t.Category, t.Action()), t.Scope != "" && !s.Caller.HasScope(t.Scope) && !s.Caller.Operator(): // an operator may whatever an approver may
		return StepScope, pattern
	case !covered(s.Edition, t.Edition):
		return StepEdition, pattern
	}
	return 0, pattern
}

// Listed is place in words.
func Listed(s Snapshot, t Tool) Decision {
	step, pattern := place(&s, &t)
	switch step {
	case StepDenied:
		return refused(step, "denied", "denied_tools of agent %s has %q", s.Agent.ID, pattern)
	case StepAllowed:
		if pattern != "" {
			return refused(step, "not_allowed", "the agent may call %s, but not in this run", t.Name)
		}
		return refused(step, "not_allowed", "allowed_tools of agent %s has no pattern for %s", s.Agent.ID, t.Name)
	case StepScope:
		if s.Caller.Allows(t.Category, t.Action()) {
			return refused(step, "scope", "credential %s lacks the scope %s", s.Caller.Credential, t.Scope)
		}
		return refused(step, "scope", "credential %s lacks the scope %s:%s", s.Caller.Credential, t.Category, t.Action())
	case StepEdition:
		paid := cmp.Or(s.Edition, tool.Community)
		d := refused(step, "edition", "%s is in the %s edition, the licence is for %s", t.Name, t.Edition, paid)
		d.Fault = fault.New(fault.Edition, "%s is in the %s edition; this installation has a licence for %s", t.Name, t.Edition, paid)
		return d
	}
	return Decision{Allowed: true, Rule: fmt.Sprintf("allowed_tools of agent %s has %q", s.Agent.ID, pattern)}
}

// covered reports whether a licence includes an edition. An edition that this
// version does not know is not included in any.
func covered(paid, wanted tool.Edition) bool {
	rank := []tool.Edition{tool.Community, tool.Pro, tool.Enterprise}
	need := slices.Index(rank, cmp.Or(wanted, tool.Community))
	return need >= 0 && need <= slices.Index(rank, cmp.Or(paid, tool.Community))
}

// Weigh applies the steps that need the normalised arguments (11, 12), and
// says whether a person must approve the call and why (15). The limit of step
// 14 is Limited, because a repeated write comes before it.
func Weigh(s Snapshot, t Tool, arguments []byte) (d Decision, because string) {
	effect, index := EvaluateRules(s.Agent.Rules, t.Name, arguments)
	switch effect {
	case Forbid:
		d := refused(StepRules, "forbidden_by_rule", "rule %d of agent %s forbids it", index+1, s.Agent.ID)
		if index < 0 {
			d = refused(StepRules, "forbidden_by_rule", "agent %s has allow rules for %s and none matches", s.Agent.ID, t.Name)
		}
		d.Fault = fault.New(fault.Forbidden, "a rule of this agent forbids %s with these arguments; other arguments may pass", t.Name)
		return d, ""
	case Ask:
		because = fmt.Sprintf("rule %d", index+1)
	}
	if pattern, ok := match(s.Agent.Scoped, t.Name); ok && !s.Granted {
		d := refused(StepGrant, "grant_required", "scoped_tools of agent %s has %q and no grant is alive", s.Agent.ID, pattern)
		d.Fault = fault.New(fault.Ungranted, "%s needs a grant; ask for one with capability_request and give the reason", t.Name)
		return d, ""
	}
	if pattern, ok := match(s.Agent.ApprovalRequired, t.Name); ok && because == "" {
		because = fmt.Sprintf("approval_required_tools has %q", pattern)
	}
	if because != "" && s.Agent.Approver == ByNobody {
		d := refused(StepApproval, "no_approver", "%s asks for approval and approver is none", because)
		d.Fault = fault.New(fault.NotConfigured,
			"%s needs an approval and nobody may give it; an operator sets the approver: pawgate agent set %s --approver operator", t.Name, s.Agent.ID)
		return d, ""
	}
	return Decision{Allowed: true}, because
}

// Limited is the tool class's own limit, and a budget that is used up (step 14).
func Limited(s Snapshot, t Tool) Decision {
	if s.ClassWait > 0 {
		return limited(StepLimit, "rate_limited", s.ClassWait, fmt.Sprintf("this agent calls too many %s tools", t.Class))
	}
	if s.Money != nil && s.Money.Stop != nil && !free(t.Category) {
		return Broke(*s.Money.Stop, nil)
	}
	return Decision{Allowed: true}
}

// match finds the first pattern that covers a tool's name.
func match(patterns []string, name string) (string, bool) {
	i := slices.IndexFunc(patterns, func(p string) bool { return Matches(p, name) })
	if i < 0 {
		return "", false
	}
	return patterns[i], true
}

func covers(patterns []string, name string) bool {
	_, ok := match(patterns, name)
	return ok
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
