package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// explained is what agent explain answers.
type explained struct {
	Allowed bool
	Reason  string
	Changes []string
	Steps   []struct {
		Step                 int
		Check, Verdict, Rule string
	}
	Notes []string
}

// Step is the verdict of one check with its rule.
func (e explained) Step(check string) string {
	for _, s := range e.Steps {
		if s.Check == check {
			return s.Verdict + " " + s.Rule
		}
	}
	return "none"
}

const explainedRules = `[{"tool":"memory_*","effect":"forbid","when":[{"arg":"query","op":"equals","value":"x"}]},
	{"tool":"memory_store","effect":"ask"},{"tool":"memory_search","effect":"forbid","when":[{"arg":"query","op":"starts_with","value":"x"}]}]`

func TestAgentExplain_steps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prepare, args string
		reason              string // "" is allowed
		changes             []string
		check, says         string // one step, and part of what it says
		note                string
	}{
		{"nothing_in_the_way", ``, `{"tool":"memory_search","arguments":{"query":"a"}}`, "", nil, "allowed_tools", `passes allowed_tools of agent bot has "*"`, ""},
		{"rule", `rules`, `{"tool":"memory_search","arguments":{"query":"x"}}`, "forbidden_by_rule", []string{"pawgate agent rules bot --remove 1 --remove 3"},
			"rules", "refuses rule 1 of agent bot forbids it", ""},
		{"rule_not_met", `rules`, `{"tool":"memory_search","arguments":{"query":"a"}}`, "", nil, "rules", "passes none matches", ""},
		{"rule_without_arguments", `rules`, `{"tool":"memory_search"}`, "", nil, "arguments", "passes were not given", "give them to have those rules weighed"},
		{"rule_asks", `rules`, `{"tool":"memory_store","arguments":{"query":"a"}}`, "approval_required", []string{"pawgate agent rules bot --remove 2"},
			"approval", "asks rule 2: a person must approve", "the call itself asks"},
		{"allow_rules_leave_it_out", `update agents set rules = '[{"tool":"memory_search","effect":"allow","when":[{"arg":"query","op":"equals","value":"b"}]}]'`,
			`{"tool":"memory_search","arguments":{"query":"a"}}`, "forbidden_by_rule", []string{"pawgate agent rules bot --remove 1"}, "rules", "has allow rules for memory_search and none matches", "would do as well"},
		{"broken_arguments", ``, `{"tool":"memory_search","arguments":{"qery":"a"}}`, "invalid_argument", nil, "arguments", `refuses unknown argument "qery"`, ""},
		{"behind_broken_arguments", ``, `{"tool":"memory_search","arguments":{"qery":"a"}}`, "invalid_argument", nil, "rules", "- not looked at", ""},
		{"list_asks", `update agents set approval_required_tools = '{memory_*}'`, `{"tool":"memory_store"}`, "approval_required",
			[]string{`pawgate agent ask bot --remove "memory_*"`}, "approval", `asks approval_required_tools has "memory_*"`, "approve ID"},
		{"C28_no_approver", `update agents set approval_required_tools = '{memory_*}', approver = 'none'`, `{"tool":"memory_store"}`, "no_approver",
			[]string{"pawgate agent set bot --approver operator", `pawgate agent ask bot --remove "memory_*"`}, "approval", "approver is none", ""},
		{"grant", `update agents set scoped_tools = '{memory_store}'`, `{"tool":"memory_store"}`, "grant_required", []string{"pawgate agent scoped bot --remove memory_store"},
			"scoped_tools", "no grant is alive", "capability_request"},
		{"grant_asked_for", `grant`, `{"tool":"memory_store"}`, "grant_required", []string{"pawgate approve gwaits"}, "scoped_tools", "no grant is alive", ""},
		{"everything_at_once", `update agents set denied_tools = '{memory_*}', allowed_tools = '{}', scoped_tools = '{memory_store}', approval_required_tools = '{memory_store}', state = 'paused'`,
			`{"tool":"memory_store"}`, "agent_inactive", []string{"pawgate agent set bot --state active", `pawgate agent deny bot --remove "memory_*"`, "pawgate agent allow bot memory_store",
				"pawgate agent scoped bot --remove memory_store", "pawgate agent ask bot --remove memory_store"}, "denied_tools", `refuses denied_tools of agent bot has "memory_*"`, ""},
		{"archived", `update agents set state = 'archived'`, `{"tool":"memory_store"}`, "agent_inactive", []string{"pawgate agent restore bot"}, "agent", "refuses agent bot is archived", ""},
		{"over_limit", `select bucket_take('class bot write', 1, 1), bucket_take('class bot write', 1, 1) from agents`, `{"tool":"memory_store"}`, "rate_limited", nil, "limit", "refuses this agent calls too many write tools", "the class write has no token left"},
		{"edition", ``, `{"tool":"odoo_report"}`, "edition", nil, "edition", "refuses odoo_report is in the enterprise edition", "set PAWGATE_LICENCE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
			switch c.prepare {
			case "":
			case "rules":
				b.exec(`update agents set rules = $1`, explainedRules)
			case "grant":
				b.exec(`update agents set scoped_tools = '{memory_store}'`)
				b.exec(`insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
					values ('gwaits', 'grant', 'bot', 'k', 'memory_store', '', '', now() + interval '1 hour')`)
			default:
				b.exec(c.prepare)
			}
			got := ok[explained](b, "agent explain", `{"agent_id":"bot",`+strings.TrimPrefix(c.args, "{"))
			if got.Reason != c.reason || got.Allowed != (c.reason == "") {
				t.Errorf("allowed %t, reason %q, want %q", got.Allowed, got.Reason, c.reason)
			}
			if diff := cmp.Diff(append([]string{}, c.changes...), got.Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if s := got.Step(c.check); !strings.Contains(s, c.says) {
				t.Errorf("%s: %q lacks %q", c.check, s, c.says)
			}
			if !strings.Contains(strings.Join(got.Notes, "\n"), c.note) {
				t.Errorf("no note has %q: %q", c.note, got.Notes)
			}
			if len(got.Steps) != 14 {
				t.Errorf("%d steps, want 14", len(got.Steps))
			}
		})
	}
}

// A budget is what to raise, not what to wait a moment for; and a tool with a
// price says so before a budget refuses it.
func TestAgentExplain_budget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	ok[map[string]any](b, "budget set", `{"agent_id":"bot","limit":"0.01"}`)
	ok[map[string]any](b, "cost prices set", `{"name":"tool:memory_search","unit":"0.008"}`)
	args := `{"agent_id":"bot","tool":"memory_search"}`
	if got := ok[explained](b, "agent explain", args); !got.Allowed || !strings.Contains(strings.Join(got.Notes, "\n"), "a call costs $0.008") {
		t.Errorf("with room: %t %q", got.Allowed, got.Notes)
	}
	ok[map[string]any](b, "budget set", `{"agent_id":"bot","limit":"0"}`)
	got := ok[explained](b, "agent explain", args)
	notes := strings.Join(got.Notes, "\n")
	if got.Reason != "budget_exceeded" || !strings.Contains(notes, "pawgate budget set raises it") || strings.Contains(notes, "no token left") {
		t.Errorf("used up: %s %q", got.Reason, notes)
	}
}

// The commands that explain names are enough.
func TestAgentExplain_changes_are_enough(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`update agents set denied_tools = '{memory_*}', scoped_tools = '{memory_store}', approval_required_tools = '{memory_store}', state = 'paused', rules = $1`, explainedRules)
	ok[map[string]any](b, "stop", `{}`)
	ok[map[string]any](b, "stop", `{"agent_id":"bot"}`)
	args := `{"agent_id":"bot","tool":"memory_store","arguments":{"query":"x"}}`
	before := ok[explained](b, "agent explain", args)
	for _, command := range before.Changes {
		words := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(command, "pawgate "), `"`, ""))
		run := map[string]any{"agent_id": "bot"}
		name := words[0] + " " + words[min(1, len(words)-1)]
		switch {
		case words[0] == "resume":
			name = "resume"
			if len(words) == 1 {
				delete(run, "agent_id")
			}
		case words[1] == "set":
			run["state"] = "active"
		case words[1] == "rules":
			var numbers []string
			for _, w := range words[3:] {
				if w != "--remove" {
					numbers = append(numbers, w)
				}
			}
			run["remove"] = numbers
		default:
			run["remove"] = strings.Contains(command, "--remove")
			run["patterns"] = words[len(words)-1:]
		}
		ok[map[string]any](b, name, encode(t, run))
	}
	if after := ok[explained](b, "agent explain", args); !after.Allowed {
		t.Errorf("after %q: %s %s", before.Changes, after.Reason, fmt.Sprint(after.Changes))
	}
}
