package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

// Steps that policy does not decide.
const (
	stepKey       policy.Step = 1
	stepArguments policy.Step = 10
)

// maxMends is more than the steps and rules that can refuse one call.
const maxMends = policy.MaxRules + 20

// run finds every refusal and the fewest commands that would undo them all.
func (w *walk) run() {
	for range maxMends {
		d := w.decide()
		if d.Allowed {
			return
		}
		if _, known := w.refusals[d.Step]; !known {
			w.refusals[d.Step] = d
			w.order = append(w.order, d.Step)
		}
		if !w.mend(d) {
			return
		}
	}
}

// decide gives the first refusal of the snapshot as it is by now.
func (w *walk) decide() policy.Decision {
	refuse := func(step policy.Step, reason, rule string) policy.Decision {
		return policy.Decision{Step: step, Reason: reason, Rule: rule}
	}
	if w.key.State != "active" {
		return refuse(stepKey, "key_"+w.key.State, fmt.Sprintf("key %s is %s", w.key.KeyID, w.key.State))
	}
	if d := policy.Decide(w.snapshot, w.entry.Tool); !d.Allowed {
		return d
	}
	if w.broken != nil {
		return refuse(stepArguments, "invalid_argument", w.broken.Error())
	}
	d, because := policy.Weigh(w.weighable(), w.entry.Tool, []byte(cmp.Or(string(w.arguments), "{}")))
	if !d.Allowed {
		return d
	}
	if d := policy.Limited(w.snapshot, w.entry.Tool); !d.Allowed {
		return d
	}
	if w.because = because; because != "" && !w.approved() {
		return refuse(policy.StepApproval, "approval_required", because+": a person must approve")
	}
	return policy.Decision{Allowed: true}
}

// weighable leaves out the rules that cannot be weighed without arguments.
func (w *walk) weighable() policy.Snapshot {
	s := w.snapshot
	if w.given {
		return s
	}
	s.Agent.Rules = nil
	for _, r := range w.snapshot.Agent.Rules {
		if len(r.When) == 0 {
			s.Agent.Rules = append(s.Agent.Rules, r)
		} else if policy.Matches(r.Tool, w.entry.Name) {
			w.note("rules look at the arguments of this tool; give them to have those rules weighed")
		}
	}
	return s
}

func (w *walk) approved() bool {
	return slices.ContainsFunc(w.asked, func(a waiting) bool { return a.Kind == "call" && a.State == "approved" })
}

func (w *walk) pending(kind string) string {
	i := slices.IndexFunc(w.asked, func(a waiting) bool { return a.Kind == kind && a.State == "pending" })
	if i < 0 {
		return ""
	}
	return w.asked[i].ID
}

func (w *walk) note(text string) {
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

func (w *walk) change(command string, args ...any) {
	w.changes = append(w.changes, fmt.Sprintf(command, args...))
}

// mend undoes one refusal in the snapshot and says how to do it for good; it
// is false for what no command can undo.
func (w *walk) mend(d policy.Decision) bool {
	agent := &w.snapshot.Agent
	switch d.Step {
	case stepKey:
		w.key.State = "active"
		w.change("key create %s", w.agent)
	case policy.StepActive:
		agent.State = "active"
		w.change("agent set %s --state active", w.agent)
	case policy.StepStop:
		w.mendStops()
	case policy.StepFlood:
		w.note("wait " + w.snapshot.FloodWait.String() + ": the credential sends too many requests")
		w.snapshot.FloodWait = 0
	case policy.StepDenied:
		w.change("agent deny %s --remove %s", w.agent, w.take(&agent.Denied))
	case policy.StepAllowed:
		agent.Allowed = append(slices.Clone(agent.Allowed), w.entry.Name)
		w.change("agent allow %s %s", w.agent, w.entry.Name)
	case policy.StepScope:
		w.mendScope()
	case policy.StepEdition:
		w.note("get a licence for the " + string(w.entry.Edition) + " edition and set PAWGATE_LICENCE")
		w.snapshot.Edition = w.entry.Edition
	case policy.StepRules:
		return w.mendRules()
	case policy.StepGrant:
		w.mendGrant()
	case policy.StepLimit:
		w.note("wait " + w.snapshot.ClassWait.String() + ": the class " + string(w.entry.Class) + " has no token left; agent limits sets how many it has")
		w.snapshot.ClassWait = 0
	case policy.StepApproval:
		return w.mendApproval(d)
	default:
		return false
	}
	return true
}

// take removes the patterns that cover the tool, and gives them for a command.
func (w *walk) take(patterns *[]string) string {
	covers := func(p string) bool { return policy.Matches(p, w.entry.Name) }
	var taken []string
	for _, p := range *patterns {
		if covers(p) {
			taken = append(taken, quote(p))
		}
	}
	*patterns = slices.DeleteFunc(slices.Clone(*patterns), covers)
	return strings.Join(taken, " ")
}

func (w *walk) mendStops() {
	for _, stop := range w.stops {
		w.change("%s", strings.TrimSpace("resume "+stop.AgentID))
	}
	w.snapshot.Stop = nil
}

// mendScope asks for another key, because a key's scopes do not change.
func (w *walk) mendScope() {
	scopes := slices.Clone(w.snapshot.Caller.Scopes)
	if who := (caller.Caller{Scopes: scopes}); !who.Allows(w.entry.Category, w.entry.Action()) {
		scopes = append(scopes, w.entry.Category+":"+w.entry.Action())
	}
	if w.entry.Scope != "" && !slices.Contains(scopes, w.entry.Scope) {
		scopes = append(scopes, w.entry.Scope)
	}
	command := "key create " + w.agent
	for _, scope := range scopes {
		if w.key.KeyID == localKey.KeyID && scope == caller.ScopeAll { // what the local user has and a key need not have
			scope = w.entry.Category + ":" + w.entry.Action()
		}
		command += " --scope " + quote(scope)
	}
	w.snapshot.Caller.Scopes = scopes
	w.change("%s", command)
}

// mendRules removes the rule that forbids, or, where allow rules leave the
// call out, all of those.
func (w *walk) mendRules() bool {
	doomed := func(r policy.Rule) bool { return r.Effect == policy.Allow && policy.Matches(r.Tool, w.entry.Name) }
	if _, i := policy.EvaluateRules(w.weighable().Agent.Rules, w.entry.Name, []byte(cmp.Or(string(w.arguments), "{}"))); i >= 0 {
		forbids := w.weighable().Agent.Rules[i].String()
		doomed = func(r policy.Rule) bool { return r.String() == forbids }
	} else {
		w.note("an allow rule that these arguments meet would do as well")
	}
	return w.removeRules(doomed)
}

func (w *walk) removeRules(doomed func(policy.Rule) bool) bool {
	agent, before := &w.snapshot.Agent, len(w.removed)
	var rules []policy.Rule
	var numbers []int
	for i, r := range agent.Rules {
		if doomed(r) {
			w.removed = append(w.removed, w.numbers[i])
			continue
		}
		rules, numbers = append(rules, r), append(numbers, w.numbers[i])
	}
	agent.Rules, w.numbers = rules, numbers
	if len(w.removed) == before {
		return false
	}
	// One command for all rules: each removal would change the numbers.
	w.changes = slices.DeleteFunc(w.changes, func(c string) bool { return strings.HasPrefix(c, "agent rules ") })
	slices.Sort(w.removed)
	command := "agent rules " + w.agent
	for _, n := range w.removed {
		command += fmt.Sprintf(" --remove %d", n)
	}
	w.change("%s", command)
	return true
}

func (w *walk) mendGrant() {
	w.snapshot.Granted = true
	if id := w.pending("grant"); id != "" {
		w.change("approve %s", id)
		return
	}
	w.note("the agent can ask for a grant itself, with capability_request")
	w.change("agent scoped %s --remove %s", w.agent, w.take(&w.snapshot.Agent.Scoped))
}

func (w *walk) mendApproval(d policy.Decision) bool {
	agent := &w.snapshot.Agent
	if d.Reason == "no_approver" {
		agent.Approver = policy.ByOperator
		w.change("agent set %s --approver operator", w.agent)
		return true
	}
	if id := w.pending("call"); id != "" {
		w.change("approve %s", id)
		return false
	}
	w.note("the call itself asks; approve ID then lets it pass once")
	if slices.ContainsFunc(agent.ApprovalRequired, func(p string) bool { return policy.Matches(p, w.entry.Name) }) {
		w.change("agent ask %s --remove %s", w.agent, w.take(&agent.ApprovalRequired))
		return true
	}
	_, i := policy.EvaluateRules(w.weighable().Agent.Rules, w.entry.Name, []byte(cmp.Or(string(w.arguments), "{}")))
	if i < 0 {
		return false
	}
	asks := w.weighable().Agent.Rules[i].String()
	return w.removeRules(func(r policy.Rule) bool { return r.String() == asks })
}

// explain words what was found.
func (w *walk) explain() explanation {
	e := explanation{AgentID: w.agent, Tool: w.entry.Name, Allowed: len(w.order) == 0, Rule: "", Changes: append([]string{}, w.changes...), Notes: append([]string{}, w.notes...)}
	last := policy.Step(0)
	if !e.Allowed {
		first := w.refusals[slices.Min(w.order)]
		e.Step, e.Reason, e.Rule = int(first.Step), first.Reason, first.Rule
		last = w.order[len(w.order)-1]
	}
	reached := w.decide().Allowed
	for _, c := range w.checks() {
		s := step{Step: int(c.step), Check: c.name, Verdict: "passes", Rule: c.passes}
		if d, refused := w.refusals[c.step]; refused {
			s.Verdict, s.Rule = "refuses", d.Rule
			if d.Reason == "approval_required" {
				s.Verdict = "asks"
			}
		} else if !reached && c.step > last {
			s.Verdict, s.Rule = "-", "not looked at: see the step before"
		}
		e.Steps = append(e.Steps, s)
	}
	if e.Allowed {
		e.Rule = policy.Listed(w.snapshot, w.entry.Tool).Rule
	}
	return e
}

// check is a step with what it says when it passes.
type check struct {
	step   policy.Step
	name   string
	passes string
}

func (w *walk) checks() []check {
	agent := w.snapshot.Agent
	return []check{
		{stepKey, "key", "credential " + w.key.KeyID + " is valid"},
		{policy.StepActive, "agent", "agent " + w.agent + " is active"},
		{policy.StepStop, "emergency stop", "none is in force, or it lets this tool run"},
		{policy.StepFlood, "flood limit", "the credential may send"},
		{policy.StepKnown, "tool", "it is in the category " + w.entry.Category},
		{policy.StepDenied, "denied_tools", "has no pattern for it"},
		{policy.StepAllowed, "allowed_tools", policy.Listed(w.snapshot, w.entry.Tool).Rule},
		{policy.StepScope, "scope", "the credential has " + w.entry.Category + ":" + w.entry.Action()},
		{policy.StepEdition, "edition", "it is in the " + string(cmp.Or(w.entry.Edition, tool.Community)) + " edition"},
		{stepArguments, "arguments", map[bool]string{true: "are valid", false: "were not given"}[w.given]},
		{policy.StepRules, "rules", w.ruleThatPasses()},
		{policy.StepGrant, "scoped_tools", passedGrant(agent, w.entry.Name)},
		{policy.StepLimit, "limit", "the class " + string(w.entry.Class) + " has a token"},
		{policy.StepApproval, "approval", map[bool]string{true: "it is approved", false: "nothing asks for one"}[w.because != ""]},
	}
}

func passedGrant(agent policy.Agent, name string) string {
	if slices.ContainsFunc(agent.Scoped, func(p string) bool { return policy.Matches(p, name) }) {
		return "a grant is alive"
	}
	return "has no pattern for it"
}

func (w *walk) ruleThatPasses() string {
	effect, i := policy.EvaluateRules(w.weighable().Agent.Rules, w.entry.Name, []byte(cmp.Or(string(w.arguments), "{}")))
	switch {
	case i >= 0:
		return fmt.Sprintf("%s: %s", effect, w.weighable().Agent.Rules[i])
	case len(w.weighable().Agent.Rules) < len(w.snapshot.Agent.Rules):
		return "those without conditions leave it to the lists"
	}
	return "none matches"
}

// quote protects a star from the shell.
func quote(text string) string {
	if strings.Contains(text, "*") {
		return `"` + text + `"`
	}
	return text
}
