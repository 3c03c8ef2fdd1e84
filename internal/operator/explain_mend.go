package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/policy"
)

// change proposes a command, as one types it.
func (w *walk) change(command string, args ...any) {
	w.changes = append(w.changes, "pawgate "+fmt.Sprintf(command, args...))
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
		if agent.State == archived {
			w.change("agent restore %s", w.agent)
		} else {
			w.change("agent set %s --state active", w.agent)
		}
		agent.State = "active"
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
		w.mendLimit()
	case policy.StepApproval:
		return w.mendApproval(d)
	default:
		return false
	}
	return true
}

// mendLimit notes what to wait for, or which budget to raise: by how much is
// not for a proposal to say.
func (w *walk) mendLimit() {
	if w.snapshot.ClassWait > 0 {
		w.note("wait " + w.snapshot.ClassWait.String() + ": the class " + string(w.entry.Class) + " has no token left; pawgate agent limits sets how many it has")
		w.snapshot.ClassWait = 0
		return
	}
	b := w.snapshot.Money.Stop
	w.note("the budget begins anew at " + b.ResetsAt.UTC().Format(time.RFC3339) + "; pawgate budget list shows it, and pawgate budget set raises it")
	money := *w.snapshot.Money
	money.Stop = nil
	w.snapshot.Money = &money
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
	w.changes = slices.DeleteFunc(w.changes, func(c string) bool { return strings.HasPrefix(c, "pawgate agent rules ") })
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
	w.note("the call itself asks; pawgate approve ID then lets it pass once")
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

// quote protects a star from the shell.
func quote(text string) string {
	if strings.Contains(text, "*") {
		return `"` + text + `"`
	}
	return text
}
