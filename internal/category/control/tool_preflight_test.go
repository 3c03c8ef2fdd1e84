package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type ready struct {
	Tool, State, Detail string
	ApprovalID          string `json:"approval_id"`
	RetryAfterMS        int64  `json:"retry_after_ms"`
}

func preflight(t *testing.T, cat tool.Category, who caller.Caller, args string) []ready {
	t.Helper()
	return tooltest.OK[struct{ Tools []ready }](t, cat, who, "tool_preflight", args).Tools
}

// state is the answer for one tool.
func state(t *testing.T, cat tool.Category, args string) ready {
	t.Helper()
	got := preflight(t, cat, tooltest.Who("coder"), args)
	if len(got) != 1 {
		t.Fatalf("%d answers: %+v", len(got), got)
	}
	return got[0]
}

func TestToolPreflight_states(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, agent, args, state, detail string }{
		{"ready", `allowed_tools = '{*}'`, `{"tools":["shop_search"]}`, "ready", ""},
		{"qualified", `allowed_tools = '{*}'`, `{"tools":["mcp__pawgate__shop_search"]}`, "ready", ""},
		{"no_such_tool", `allowed_tools = '{*}'`, `{"tools":["shop_serch"]}`, "unknown", ""},
		{"denied_looks_unknown", `allowed_tools = '{*}', denied_tools = '{shop_search}'`, `{"tools":["shop_search"]}`, "unknown", ""},
		{"not_allowed_looks_unknown", `allowed_tools = '{shop_order}'`, `{"tools":["shop_search"]}`, "unknown", ""},
		{"scope_looks_unknown", `allowed_tools = '{*}'`, `{"tools":["shop_close"]}`, "unknown", ""},
		{"edition", `allowed_tools = '{*}'`, `{"tools":["shop_report"]}`, "edition", "enterprise edition"},
		{"grant", `allowed_tools = '{*}', scoped_tools = '{shop_*}'`, `{"tools":["shop_order"]}`, "needs_grant", "capability_request"},
		{"approval", `allowed_tools = '{*}', approval_required_tools = '{shop_order}'`, `{"tools":["shop_order"]}`, "needs_approval", "approval_required_tools"},
		{"nobody_approves", `allowed_tools = '{*}', approval_required_tools = '{shop_order}', approver = 'none'`, `{"tools":["shop_order"]}`, "denied", "pawgate agent set coder --approver"},
		{"rule_forbids", `allowed_tools = '{*}', rules = '[{"tool":"shop_order","effect":"forbid"}]'`, `{"tools":["shop_order"]}`, "denied", "a rule of this agent"},
		{"rule_asks", `allowed_tools = '{*}', rules = '[{"tool":"shop_*","effect":"ask"}]'`, `{"tools":["shop_order"]}`, "needs_approval", "rule 1"},
		{"rule_may_matter", `allowed_tools = '{*}', rules = '[{"tool":"shop_*","effect":"forbid","when":[{"arg":"limit","op":"gt","value":5}]}]'`,
			`{"tools":["shop_search"]}`, "ready", "give them to be sure"},
		{"rule_weighed_passes", `allowed_tools = '{*}', rules = '[{"tool":"shop_*","effect":"forbid","when":[{"arg":"limit","op":"gt","value":5}]}]'`,
			`{"tools":["shop_search"],"arguments":{"shop_search":{"limit":"5"}}}`, "ready", ""},
		{"rule_weighed_forbids", `allowed_tools = '{*}', rules = '[{"tool":"shop_*","effect":"forbid","when":[{"arg":"limit","op":"gt","value":5}]}]'`,
			`{"tools":["shop_search"],"arguments":{"shop_search":{"limit":6}}}`, "denied", "a rule of this agent"},
		{"allow_rules_leave_nothing", `allowed_tools = '{*}', rules = '[{"tool":"shop_*","effect":"allow","when":[{"arg":"model","op":"equals","value":"a"}]}]'`,
			`{"tools":["shop_search"],"arguments":{"shop_search":{"model":"b"}}}`, "denied", "a rule of this agent"},
		{"broken_arguments", `allowed_tools = '{*}'`, `{"tools":["shop_search"],"arguments":{"shop_search":{"limit":0}}}`, "invalid", "limit must be between"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db, cat := inShop(t)
			exec(t, db, `update agents set `+c.agent+` where id = 'coder'`)
			got := state(t, cat, c.args)
			if got.State != c.state || !strings.Contains(got.Detail, c.detail) || c.detail == "" && got.Detail != "" {
				t.Errorf("got %+v, want %s with %q", got, c.state, c.detail)
			}
		})
	}
}

func TestToolPreflight_standing(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	exec(t, db, `update agents set allowed_tools = '{*}', scoped_tools = '{shop_order}' where id = 'coder'`)
	exec(t, db, `insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, state, expires_at, covers_until)
		values ('g1', 'grant', 'coder', 'k', 'shop_order', '', '', 'approved', now(), now() + interval '1 hour')`)
	if got := state(t, cat, `{"tools":["shop_order"]}`); got.State != "ready" {
		t.Errorf("with a grant: %+v", got)
	}
	exec(t, db, `update approvals set state = 'revoked'`)
	if got := state(t, cat, `{"tools":["shop_order"]}`); got.State != "needs_grant" {
		t.Errorf("after it was revoked: %+v", got)
	}
	exec(t, db, `insert into stops (agent_id, stopped_by) values ('coder', 'x')`)
	got := preflight(t, cat, tooltest.Who("coder"), `{"tools":["shop_search","emergency_stop","nothing","shop_close"]}`)
	if diff := cmp.Diff([]string{"stopped", "ready", "unknown", "unknown"}, []string{got[0].State, got[1].State, got[2].State, got[3].State}); diff != "" {
		t.Errorf("while stopped (-want +got):\n%s", diff)
	}
}

// Nothing is taken, filed, used or recorded.
func TestToolPreflight_consumes_nothing(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	exec(t, db, `update agents set allowed_tools = '{*}', approval_required_tools = '{shop_order}', limits = '{"send": {"burst": 2, "per_minute": 1}}' where id = 'coder'`)
	for range 5 {
		preflight(t, cat, tooltest.Who("coder"), `{"tools":["shop_send","shop_order","shop_search"],"arguments":{"shop_order":{}}}`)
	}
	for _, table := range []string{"buckets", "approvals", "audit", "idempotency"} {
		if n := count(t, db, `select count(*) from `+table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	take := func() int {
		return count(t, db, `select coalesce(bucket_take('class coder send', 2, 1), 0)::int`)
	}
	take()
	if got := state(t, cat, `{"tools":["shop_send"]}`); got.State != "ready" {
		t.Errorf("one of two is left: %+v", got)
	}
	take()
	got := preflight(t, cat, tooltest.Who("coder"), `{"tools":["shop_send","shop_search"]}`)
	if got[0].State != "over_limit" || got[0].RetryAfterMS < 50_000 || got[0].RetryAfterMS > 60_000 || got[1].State != "ready" {
		t.Errorf("none is left: %+v", got)
	}
	if wait := take(); wait < 50_000 || wait > 60_000 {
		t.Errorf("the gate says %d ms", wait)
	}
	exec(t, db, `update buckets set at = at - interval '1 minute'`)
	if got := state(t, cat, `{"tools":["shop_send"]}`); got.State != "ready" {
		t.Errorf("a minute later: %+v", got)
	}
}

// What a person decided about the very call counts.
func TestToolPreflight_approvals(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	exec(t, db, `update agents set allowed_tools = '{*}', approval_required_tools = '{shop_order}' where id = 'coder'`)
	g := &gate{t: t, db: db, cat: cat}
	definition := fingerprint(t)
	ask := func(arguments string) string {
		return g.call("shop_order", definition, arguments).ID
	}
	at := func(arguments string) ready {
		return state(t, cat, `{"tools":["shop_order"],"arguments":{"shop_order":`+arguments+`}}`)
	}
	id := ask(`{"model":"a","to":["x"]}`)
	exec(t, db, `update approvals set definition = decode($1, 'hex')`, definition)
	if got := at(`{"model":"a","to":["x"]}`); got.State != "needs_approval" || got.ApprovalID != id {
		t.Errorf("pending: %+v", got)
	}
	if got := at(`{"model":"b"}`); got.State != "needs_approval" || got.ApprovalID != "" {
		t.Errorf("another call: %+v", got)
	}
	g.decide(`{"approval_id":"` + id + `","decision":"approve","for_minutes":5,"same":["to"]}`)
	for arguments, want := range map[string]string{`{"model":"a","to":["x"]}`: "ready", `{"to":["x"]}`: "ready", `{"to":["x","y"]}`: "needs_approval"} {
		if got := at(arguments); got.State != want {
			t.Errorf("%s: %+v, want %s", arguments, got, want)
		}
	}
	exec(t, db, `update approvals set state = 'denied', reason = 'no', covers = null, covers_until = null`)
	if got := at(`{"model":"a","to":["x"]}`); got.State != "denied" || got.Detail != "it was not approved: no" {
		t.Errorf("denied: %+v", got)
	}
	exec(t, db, `update approvals set state = 'used'`)
	if got := at(`{"model":"a","to":["x"]}`); got.State != "needs_approval" {
		t.Errorf("used: %+v", got)
	}
}

func fingerprint(t *testing.T) string {
	t.Helper()
	loaded, err := shopCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Find("shop_order").Fingerprint()
}

func TestToolPreflight_refuses(t *testing.T) {
	t.Parallel()
	_, cat := inShop(t)
	many := strings.Repeat(`"a",`, 200) + `"a"`
	for args, parameter := range map[string]string{
		`{}`:                                   "tools",
		`{"tools":[]}`:                         "tools",
		`{"tools":[` + many + `]}`:             "tools",
		`{"tools":"shop_search"}`:              "tools",
		`{"tools":["a"],"arguments":{"b":{}}}`: "arguments",
		`{"tools":["a"],"arguments":{"a":5}}`:  "arguments.a",
	} {
		tooltest.Invalid(t, cat, tooltest.Who("coder"), "tool_preflight", args, parameter)
	}
	long := preflight(t, cat, tooltest.Who("coder"), fmt.Sprintf(`{"tools":[%q]}`, strings.Repeat("x", 5000)))
	if len(long[0].Tool) > 100 {
		t.Errorf("a long name comes back whole: %d bytes", len(long[0].Tool))
	}
}
