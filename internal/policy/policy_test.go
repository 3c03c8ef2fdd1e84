package policy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

var tools = []policy.Tool{
	{Category: "memory", Definition: tool.Definition{Name: "memory_search", Hints: tool.Hints{ReadOnly: true}}},
	{Category: "memory", Definition: tool.Definition{Name: "memory_store"}},
	{Category: "odoo", Definition: tool.Definition{Name: "odoo_search", Hints: tool.Hints{ReadOnly: true}, Edition: tool.Pro}},
	{Category: "odoo", Definition: tool.Definition{Name: "odoo_execute", Class: tool.ClassExecute, Edition: tool.Enterprise}},
	{Category: "control", Definition: tool.Definition{Name: "tool_approve", Scope: caller.ScopeApprove}},
}

var patterns = []string{"*", "memory_*", "odoo_*", "memory_search", "odoo_execute", "tool_approve", "Memory_*", "memory_", "nothing"}

// pick takes a random subset.
func pick(r *rand.Rand, from []string) []string {
	var some []string
	for _, s := range from {
		if r.IntN(3) == 0 {
			some = append(some, s)
		}
	}
	return some
}

func snapshot(r *rand.Rand) policy.Snapshot {
	return policy.Snapshot{
		Agent:   policy.Agent{ID: "a", State: "active", Allowed: pick(r, patterns), Denied: pick(r, patterns)},
		Caller:  caller.Caller{Agent: "a", Scopes: pick(r, []string{"*", "memory:read", "*:read", "odoo:*", "approve", "operator"})},
		Edition: []tool.Edition{"", tool.Community, tool.Pro, tool.Enterprise}[r.IntN(4)],
	}
}

// TestProperties holds what must be true of every decision.
func TestProperties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := snapshot(r)
		tl := tools[r.IntN(len(tools))]
		d := policy.Decide(s, tl)
		if listed := policy.Listed(s, tl).Allowed; listed != d.Allowed {
			t.Fatalf("listed %v, callable %v: %+v %s", listed, d.Allowed, s, tl.Name)
		}
		if denied := slices.ContainsFunc(s.Agent.Denied, func(p string) bool { return policy.Matches(p, tl.Name) }); denied && d.Allowed {
			t.Fatalf("a denied tool passes: %+v %s", s, tl.Name)
		}
		if len(s.Agent.Allowed) == 0 && d.Allowed {
			t.Fatalf("an empty list allows %s", tl.Name)
		}
		more := s
		more.Agent.Denied = append(slices.Clone(s.Agent.Denied), patterns[r.IntN(len(patterns))])
		if !d.Allowed && policy.Decide(more, tl).Allowed {
			t.Fatalf("a further deny widens: %+v %s", more, tl.Name)
		}
		wider := s
		wider.Agent.Allowed = append(slices.Clone(s.Agent.Allowed), patterns[r.IntN(len(patterns))])
		if d.Step == policy.StepDenied && policy.Decide(wider, tl).Allowed {
			t.Fatalf("a further allow touches a deny: %+v %s", wider, tl.Name)
		}
		if d.Allowed && !policy.Decide(wider, tl).Allowed {
			t.Fatalf("a further allow narrows: %+v %s", wider, tl.Name)
		}
		if !d.Allowed && d.Hidden() != (d.Fault == nil) {
			t.Fatalf("a refusal must be hidden or worded: %+v", d)
		}
		stopped := s
		stopped.Stop = &policy.Stop{}
		if policy.Decide(stopped, tl).Allowed {
			t.Fatalf("%s passes a stop", tl.Name)
		}
	}
}

// TestOrder: the first step that refuses decides.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := policy.Snapshot{
		Agent: policy.Agent{ID: "a", State: "paused", Denied: []string{"*"}}, Stop: &policy.Stop{Everyone: true}, FloodWait: time.Second,
	}
	tl := tools[2]
	for _, want := range []policy.Step{policy.StepActive, policy.StepStop, policy.StepFlood, policy.StepDenied, policy.StepAllowed, policy.StepScope, policy.StepEdition} {
		if d := policy.Decide(s, tl); d.Step != want || d.Allowed {
			t.Fatalf("step %d, want %d", d.Step, want)
		}
		switch want {
		case policy.StepActive:
			s.Agent.State = "active"
		case policy.StepStop:
			s.Stop = nil
		case policy.StepFlood:
			s.FloodWait = 0
		case policy.StepDenied:
			s.Agent.Denied = nil
		case policy.StepAllowed:
			s.Agent.Allowed = []string{"*"}
		case policy.StepScope:
			s.Caller.Scopes = []string{"odoo:read"}
		case policy.StepEdition:
			s.Edition = tool.Pro
		}
	}
	if d := policy.Decide(s, tl); !d.Allowed {
		t.Errorf("refused at %d", d.Step)
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	ask := []policy.Rule{{Tool: "memory_store", Effect: policy.Ask}}
	for _, c := range []struct {
		name    string
		agent   policy.Agent
		granted bool
		reason  fault.Reason
		because string
	}{
		{"nothing", policy.Agent{}, false, "", ""},
		{"approval required", policy.Agent{ApprovalRequired: []string{"memory_*"}}, false, "", "approval_required_tools"},
		{"a rule asks", policy.Agent{Rules: ask}, false, "", "rule 1"},
		{"a rule forbids", policy.Agent{Rules: append([]policy.Rule{{Tool: "*", Effect: policy.Forbid}}, ask...)}, false, fault.Forbidden, ""},
		{"allow rules and none matches", policy.Agent{Rules: []policy.Rule{{Tool: "memory_store", Effect: policy.Allow, When: []policy.Condition{{Arg: "content", Op: policy.Equals, Value: "x"}}}}}, false, fault.Forbidden, ""},
		{"scoped", policy.Agent{Scoped: []string{"memory_store"}}, false, fault.Ungranted, ""},
		{"scoped and granted", policy.Agent{Scoped: []string{"memory_store"}}, true, "", ""},
		{"nobody approves", policy.Agent{Rules: ask, Approver: policy.ByNobody}, false, fault.NotConfigured, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, because := policy.Weigh(policy.Snapshot{Agent: c.agent, Granted: c.granted}, tools[1], []byte(`{"content":"y"}`))
			if c.reason == "" && !d.Allowed || c.reason != "" && (d.Fault == nil || d.Fault.Reason != c.reason) {
				t.Errorf("decision %+v", d)
			}
			if !strings.Contains(because, c.because) || (because == "") != (c.because == "") {
				t.Errorf("because %q", because)
			}
		})
	}
}

func TestBaseName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"memory_search": "memory_search", "mcp__pawgate__memory_search": "memory_search", "mcp__my-server__x": "x",
		"mcp__a__mcp__b__x": "mcp__a__mcp__b__x", "mcp____x": "mcp____x", "mcp__a__": "", "mcp__a": "mcp__a",
		"a__b": "a__b", "MCP__a__x": "MCP__a__x", "": "",
	} {
		if got := policy.BaseName(in); got != want {
			t.Errorf("BaseName(%q) = %q, want %q", in, got, want)
		}
	}
}
