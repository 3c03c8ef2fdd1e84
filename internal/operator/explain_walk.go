package operator

import (
	"cmp"
	"fmt"
	"slices"

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

// explain words what was found.
func (w *walk) explain() explanation {
	e := explanation{AgentID: w.agent, Tool: w.entry.Name, Allowed: len(w.order) == 0, Rule: "", Changes: append([]string{}, w.changes...), Notes: append([]string{}, w.notes...)}
	last := policy.Step(0)
	if !e.Allowed {
		first := w.refusals[slices.Min(w.order)]
		e.Step, e.Reason, e.Rule = int(first.Step), first.Reason, first.Rule
		last = w.order[len(w.order)-1]
	}
	if m := w.snapshot.Money; m != nil && m.Covered && m.Price != nil && *m.Price > 0 {
		e.Notes = append(e.Notes, "a call costs "+policy.Dollars(*m.Price)+", and one that its budget has no room for is refused; pawgate budget list shows what is left")
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
