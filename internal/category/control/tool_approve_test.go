package control_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/category/control"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

func TestToolApprove(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{"model":"res.partner"}`)
	got := g.decide(`{"approval_id":"` + id + `","decision":"approve","reason":" fine "}`)
	want := decided{ApprovalID: id, State: "approved", Kind: "call", AgentID: "coder", Tool: "odoo_search",
		Arguments: json.RawMessage(`{"model": "res.partner"}`), Because: "rule 1", Reason: "fine", DecidedBy: "lead (k7)", Changed: true,
		Note: "the agent must repeat the same call before expires_at; it runs once"}
	got.Arguments = compact(t, got.Arguments)
	want.Arguments = compact(t, want.Arguments)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("approval (-want +got):\n%s", diff)
	}
	g.want("odoo_search", `{"model":"res.partner"}`, "go")
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// AUTH-15: bound to tool, arguments and agent, for one use.
func TestToolApprove_AUTH_15_other_arguments_or_twice(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{"limit":1}`)
	g.decide(`{"approval_id":"` + id + `","decision":"approve"}`)
	for _, other := range []string{`{"limit":2}`, `{}`, `{"limit":1,"offset":1}`} {
		g.want("odoo_search", other, "pending")
	}
	g.want("odoo_execute", `{"limit":1}`, "pending")
	g.want("odoo_search", `{"limit":1}`, "go")
	g.want("odoo_search", `{"limit":1}`, "running") // used, not finished: never a second time
	g.exec(`update approvals set used_at = used_at - interval '1 hour' where id = $1`, id)
	g.want("odoo_search", `{"limit":1}`, "unknown")
}

// AUTH-23: what was approved is the tool as it was then.
func TestToolApprove_AUTH_23_definition_changed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.decide(`{"approval_id":"` + g.pending("odoo_search", `{}`) + `","decision":"approve"}`)
	g.decide(`{"approval_id":"` + g.pending("odoo_report", `{}`) + `","decision":"approve","for_minutes":60,"same":[]}`)
	for _, tool := range []string{"odoo_search", "odoo_report"} {
		if v := g.call(tool, "v2", `{}`); v.Verdict != "pending" {
			t.Errorf("%s changed after it was approved: %+v", tool, v)
		}
		g.want(tool, `{}`, "go")
	}
}

// AUTH-19: after the stated expiry nobody can approve, swept or not; and the
// approver is who authenticated.
func TestToolApprove_AUTH_19_expired(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{}`)
	g.exec(`update approvals set expires_at = clock_timestamp() where id = $1`, id)
	for _, decision := range []string{"approve", "deny"} {
		f := tooltest.Fault(t, g.cat, approver(), "tool_approve", `{"approval_id":"`+id+`","decision":"`+decision+`"}`, "expired")
		if !strings.Contains(f.Message, "ran out at") {
			t.Errorf("it does not say so: %s", f.Message)
		}
	}
	if got := g.decide(`{"approval_id":"` + id + `","decision":"show"}`); got.State != "expired" || got.DecidedBy != "" {
		t.Errorf("got %+v", got)
	}
	if v := g.call("odoo_search", "v1", `{}`); v.Verdict != "pending" || v.ID == id {
		t.Errorf("an expired request must lead to a new one: %+v", v)
	}
	tooltest.Invalid(t, g.cat, approver(), "tool_approve", `{"approval_id":"`+id+`","decision":"approve","decided_by":"ceo"}`, "decided_by")
}

func TestToolApprove_who_may(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{}`)
	args := `{"approval_id":"` + id + `","decision":"approve"}`
	for name, c := range map[string]struct {
		who  caller.Caller
		want fault.Reason
	}{
		"no_scope":            {tooltest.Who("lead"), fault.Denied},
		"itself":              {tooltest.Who("coder"), fault.Denied},
		"itself_as_approver":  {caller.Caller{Agent: "coder", Credential: "k2", Scopes: []string{"*", caller.ScopeApprove}}, "self_approval"},
		"itself_as_operator":  {caller.Caller{Agent: "coder", Credential: "k2", Scopes: []string{"*", caller.ScopeOperator}}, "self_approval"},
		"its_credential":      {caller.Caller{Agent: "lead", Credential: "k1", Scopes: []string{"*", caller.ScopeApprove}}, "self_approval"},
		"scope_of_other_name": {caller.Caller{Agent: "lead", Credential: "k7", Scopes: []string{"*", "approve:write", "Approve"}}, fault.Denied},
	} {
		t.Run(name, func(t *testing.T) { tooltest.Fault(t, g.cat, c.who, "tool_approve", args, c.want) })
	}
	if got := tooltest.OK[decided](t, g.cat, operator(), "tool_approve", args); got.DecidedBy != "stranger (k9)" {
		t.Errorf("an operator's approval: %+v", got)
	}
}

// Deciding again: the same is no error, anything else says what it is.
func TestToolApprove_again(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, c := range []struct{ name, prepare, first, second, want string }{
		{"approve_twice", "", `"approve"`, `"approve"`, "approved"},
		{"deny_twice", "", `"deny"`, `"deny"`, "denied"},
		{"deny_after_approve", "", `"approve"`, `"deny"`, "approved"},
		{"approve_after_deny", "", `"deny"`, `"approve"`, "denied"},
		{"approve_after_use", "used", `"approve"`, `"approve"`, "used"},
		{"deny_after_use", "used", `"approve"`, `"deny"`, "used"},
		{"approve_after_cancel", "cancelled", `"approve"`, `"approve"`, "cancelled"},
		{"approve_after_revoke", "revoked", `"approve"`, `"approve"`, "revoked"},
		{"more_than_before", "", `"approve"`, `"approve","for_minutes":5,"same":[]`, "approved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := g.pending("odoo_search", `{"q":"`+c.name+`"}`)
			g.decide(`{"approval_id":"` + id + `","decision":` + c.first + `}`)
			if c.prepare != "" {
				g.exec(`update approvals set state = $2 where id = $1`, id, c.prepare)
			}
			args := `{"approval_id":"` + id + `","decision":` + c.second + `}`
			if slices.Contains([]string{"approve_twice", "deny_twice", "approve_after_use"}, c.name) {
				if got := g.decide(args); got.Changed || got.State != c.want {
					t.Errorf("got %+v, want %s unchanged", got, c.want)
				}
				return
			}
			if f := tooltest.Fault(t, g.cat, approver(), "tool_approve", args, fault.Conflict); f.Fields["state"] != c.want {
				t.Errorf("the fault names the state %v, want %s", f.Fields["state"], c.want)
			}
		})
	}
}

func TestToolApprove_denied_with_the_reason(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{}`)
	g.decide(`{"approval_id":"` + id + `","decision":"deny","reason":"not on a Sunday"}`)
	if v := g.call("odoo_search", "v1", `{}`); v.Verdict != "denied" || v.Reason != "not on a Sunday" || v.ID != id {
		t.Errorf("got %+v", v)
	}
}

// C31: what one types on a phone.
func TestToolApprove_C31_prefix(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, id := range []string{"abcdef1234", "abcdxx1234", "abzzzz1234", "abcdef123456"} {
		g.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at, created_at)
			values ($1, 'coder', 'k1', 'odoo_search', '', '', now() + interval '1 hour', now() + length($1) * interval '1 second')`, id)
	}
	show := func(prefix string) decided {
		return g.decide(`{"approval_id":"` + prefix + `","decision":"show"}`)
	}
	for prefix, want := range map[string]string{"abzz": "abzzzz1234", " ABZZ ": "abzzzz1234", "abcdx": "abcdxx1234", "abcdef1234": "abcdef1234", "abcdef12345": "abcdef123456"} {
		if got := show(prefix); got.ApprovalID != want || got.State != "pending" {
			t.Errorf("%q means %+v, want %s", prefix, got, want)
		}
	}
	f := tooltest.Fault(t, g.cat, approver(), "tool_approve", `{"approval_id":"abcd","decision":"approve"}`, "ambiguous")
	if n := len(f.Fields["candidates"].([]map[string]any)); n != 3 || !strings.Contains(f.Message, "abcdxx1234") {
		t.Errorf("%d candidates: %s", n, f.Message)
	}
	g.exec(`update approvals set state = 'denied' where id like 'abcdef%'`)
	if got := show("abcd"); got.ApprovalID != "abcdxx1234" {
		t.Errorf("of several the pending one is meant, got %s", got.ApprovalID)
	}
	tooltest.Invalid(t, g.cat, approver(), "tool_approve", `{"approval_id":"abz","decision":"approve"}`, "approval_id")
	tooltest.Fault(t, g.cat, approver(), "tool_approve", `{"approval_id":"ab%z","decision":"approve"}`, fault.NotFound)
	tooltest.Fault(t, g.cat, approver(), "tool_approve", `{"approval_id":"nothing","decision":"approve"}`, fault.NotFound)
}

// C32: this tool, this target, for a while.
func TestToolApprove_C32_durable(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("send_message", `{"channel":"line","to":["u1"],"text":"hi"}`)
	got := g.decide(`{"approval_id":"` + id + `","decision":"approve","for_minutes":60,"same":["channel","to"]}`)
	if diff := cmp.Diff(`{"channel":"line","to":["u1"]}`, string(compact(t, got.Covers))); diff != "" || got.CoversUntil == nil {
		t.Errorf("covers until %v (-want +got):\n%s", got.CoversUntil, diff)
	}
	for range 2 {
		g.want("send_message", `{"channel":"line","to":["u1"],"text":"hi"}`, "go")
	}
	g.want("send_message", `{"channel":"line","to":["u1"],"text":"again"}`, "go")
	for _, other := range []string{
		`{"channel":"line","to":["u1","u2"],"text":"hi"}`, // a list that only begins so
		`{"channel":"line","to":["u2"],"text":"hi"}`, `{"channel":"line","text":"hi"}`, `{"channel":"telegram","to":["u1"],"text":"hi"}`,
	} {
		g.want("send_message", other, "pending")
	}
	g.exec(`update approvals set covers_until = clock_timestamp(), expires_at = clock_timestamp() where id = $1`, id)
	g.want("send_message", `{"channel":"line","to":["u1"],"text":"hi"}`, "pending")
}

// A revoked approval lets nothing pass, not even the call it was given for.
func TestToolApprove_C32_revoked(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, more := range []string{"", `,"for_minutes":60,"same":[]`} {
		args := fmt.Sprintf(`{"text":%q}`, more)
		id := g.pending("send_message", args)
		g.decide(`{"approval_id":"` + id + `","decision":"approve"` + more + `}`)
		g.exec(`update approvals set state = 'revoked' where id = $1`, id)
		g.want("send_message", args, "pending")
	}
}

func TestToolApprove_any_arguments(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("send_message", `{"text":"a"}`)
	if got := g.decide(`{"approval_id":"` + id + `","decision":"approve","for_minutes":1,"same":[]}`); string(got.Covers) != `{}` {
		t.Errorf("covers %s", got.Covers)
	}
	g.want("send_message", `{"text":"b"}`, "go")
}

func TestToolApprove_terms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("memory_store", `{"content":"x"}`)
	for rest, parameter := range map[string]string{
		`"decision":"approve","for_minutes":61,"same":[]`:               "for_minutes",
		`"decision":"approve","for_minutes":0,"same":[]`:                "for_minutes",
		`"decision":"approve","for_minutes":5`:                          "same",
		`"decision":"approve","same":["content"]`:                       "for_minutes",
		`"decision":"approve","for_minutes":5,"same":["to"]`:            "same",
		`"decision":"deny","for_minutes":5`:                             "for_minutes",
		`"decision":"maybe"`:                                            "decision",
		`"decision":"deny","reason":"` + strings.Repeat("x", 501) + `"`: "reason",
	} {
		tooltest.Invalid(t, g.cat, approver(), "tool_approve", `{"approval_id":"`+id+`",`+rest+`}`, parameter)
	}
	tooltest.Invalid(t, g.cat, approver(), "tool_approve", `{"decision":"approve"}`, "approval_id")
	g.want("memory_store", `{"content":"x"}`, "pending") // none of it decided anything
}

// An approved call has its whole life from the decision on, so that an
// approval in the last second is of use.
func TestToolApprove_life_begins_again(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.pending("odoo_search", `{}`)
	g.exec(`update approvals set created_at = clock_timestamp() - interval '14 minutes', expires_at = clock_timestamp() + interval '1 minute' where id = $1`, id)
	g.decide(`{"approval_id":"` + id + `","decision":"approve"}`)
	var left float64
	if err := g.db.QueryRow(t.Context(), `select extract(epoch from expires_at - clock_timestamp()) from approvals where id = $1`, id).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left < 14*60 || left > 15*60+1 {
		t.Errorf("%v s are left, want 15 minutes", left)
	}
}

// One decision, whoever comes first: twenty at once, of both kinds.
func TestToolApprove_many_at_once(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	cat := setup(t, pool)
	for round := range 5 {
		id := fmt.Sprintf("arace%d", round)
		if _, err := pool.Exec(t.Context(), `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
			values ($1, 'coder', 'k1', 'odoo_search', '', '', now() + interval '1 minute')`, id); err != nil {
			t.Fatal(err)
		}
		table := tool.Assemble(cat)
		var wg sync.WaitGroup
		states := make(chan string, 20)
		changed := make(chan bool, 20)
		for i := range 20 {
			wg.Go(func() {
				decision := []string{"approve", "deny"}[i%2]
				out := table.Call(t.Context(), approver(), "tool_approve", []byte(`{"approval_id":"`+id+`","decision":"`+decision+`"}`))
				switch {
				case out.OK != nil:
					var d decided
					if err := json.Unmarshal(out.OK, &d); err != nil {
						t.Error(err)
					}
					states <- d.State
					changed <- d.Changed
				case out.Fault != nil && out.Fault.Reason == fault.Conflict:
					states <- fmt.Sprint(out.Fault.Fields["state"])
				default:
					t.Errorf("got %+v %+v", out.Fault, out.Invalid)
				}
			})
		}
		wg.Wait()
		close(states)
		close(changed)
		seen := slices.Compact(slices.Sorted(channel(states)))
		made := slices.Collect(channel(changed))
		if n := len(made) - len(slices.DeleteFunc(made, func(c bool) bool { return c })); n != 1 || len(seen) != 1 {
			t.Errorf("round %d: %d decisions, the callers saw %v", round, n, seen)
		}
	}
}

// channel yields what a closed channel holds.
func channel[T any](c <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for v := range c {
			if !yield(v) {
				return
			}
		}
	}
}

// C29: any instance decides, at once.
func TestToolApprove_C29_another_instance(t *testing.T) {
	t.Parallel()
	url := postgrestest.CloneURL(t)
	first := postgrestest.Pool(t, postgres.Config{URL: url})
	cat := setup(t, first)
	if _, err := first.Exec(t.Context(), `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
		values ('aother1', 'coder', 'k1', 'odoo_search', '', '', now() + interval '1 minute')`); err != nil {
		t.Fatal(err)
	}
	other := control.New(postgrestest.Pool(t, postgres.Config{URL: url, Pooled: true}), time.Now) // and behind a pooler
	if got := tooltest.OK[decided](t, other, approver(), "tool_approve", `{"approval_id":"aother1","decision":"approve"}`); got.State != "approved" {
		t.Errorf("got %+v", got)
	}
	if again := tooltest.OK[decided](t, cat, approver(), "tool_approve", `{"approval_id":"aother1","decision":"approve"}`); again.Changed {
		t.Errorf("the first instance does not see it: %+v", again)
	}
}
