package control_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type requested struct {
	Tool, State, Note string
	ApprovalID        string `json:"approval_id"`
	Until             time.Time
	Changed           bool
}

const order = `{"tool":"shop_order","reason":"the printer is out of paper","task_id":"t-9"}`

func scoped(t *testing.T, db postgres.DB) {
	t.Helper()
	exec(t, db, `update agents set allowed_tools = '{*}', scoped_tools = '{shop_order}' where id = 'coder'`)
}

func TestCapabilityRequest(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	scoped(t, db)
	coder := tooltest.Who("coder")
	first := tooltest.OK[requested](t, cat, coder, "capability_request", order)
	if first.State != "pending" || !first.Changed || !strings.HasPrefix(first.ApprovalID, "g") || first.Tool != "shop_order" || !strings.Contains(first.Note, "a person decides") {
		t.Errorf("first: %+v", first)
	}
	if life := time.Until(first.Until); life < 14*time.Minute || life > 16*time.Minute {
		t.Errorf("it waits for %v, want 15 minutes", life)
	}
	if again := tooltest.OK[requested](t, cat, coder, "capability_request", `{"tool":"mcp__pawgate__shop_order","reason":"again"}`); again.ApprovalID != first.ApprovalID || again.Changed {
		t.Errorf("a second request makes a second card: %+v", again)
	}
	if got := state(t, cat, `{"tools":["shop_order"]}`); got.State != "needs_grant" {
		t.Errorf("asking is not getting: %+v", got)
	}
	got := tooltest.OK[decided](t, cat, approver(), "tool_approve", `{"approval_id":"`+first.ApprovalID+`","decision":"approve"}`)
	if got.Kind != "grant" || got.TaskID != "t-9" || !strings.Contains(string(got.Arguments), "out of paper") || !strings.Contains(got.Because, "scoped_tools") {
		t.Errorf("what the person saw: %+v", got)
	}
	if got := state(t, cat, `{"tools":["shop_order"]}`); got.State != "ready" {
		t.Errorf("granted: %+v", got)
	}
	alive := tooltest.OK[requested](t, cat, coder, "capability_request", order)
	if life := time.Until(alive.Until); alive.State != "granted" || alive.Changed || life < 59*time.Minute || life > 61*time.Minute {
		t.Errorf("while it is alive: %+v", alive)
	}
	exec(t, db, `update approvals set covers_until = now()`)
	if got := state(t, cat, `{"tools":["shop_order"]}`); got.State != "needs_grant" {
		t.Errorf("after its end: %+v", got)
	}
	if next := tooltest.OK[requested](t, cat, coder, "capability_request", order); next.State != "pending" || next.ApprovalID == first.ApprovalID {
		t.Errorf("after its end: %+v", next)
	}
}

// A grant can be given for less than the agent's usual time, never for more.
func TestCapabilityRequest_life_of_the_grant(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[string]time.Duration{"": 20 * time.Minute, `,"for_minutes":5`: 5 * time.Minute, `,"for_minutes":60`: 20 * time.Minute} {
		t.Run(minutes, func(t *testing.T) {
			db, cat := inShop(t)
			scoped(t, db)
			exec(t, db, `update agents set grant_life = '20 minutes' where id = 'coder'`)
			id := tooltest.OK[requested](t, cat, tooltest.Who("coder"), "capability_request", order).ApprovalID
			tooltest.OK[decided](t, cat, approver(), "tool_approve", `{"approval_id":"`+id+`","decision":"approve"`+minutes+`}`)
			alive := tooltest.OK[requested](t, cat, tooltest.Who("coder"), "capability_request", order)
			if left := time.Until(alive.Until); left > want || left < want-time.Minute {
				t.Errorf("%v are left, want %v", left, want)
			}
		})
	}
}

func TestCapabilityRequest_refuses(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	scoped(t, db)
	coder := tooltest.Who("coder")
	for args, want := range map[string]fault.Reason{
		`{"tool":"shop_search","reason":"x"}`: fault.Conflict, // needs none
		`{"tool":"shop_serch","reason":"x"}`:  fault.NotFound,
		`{"tool":"shop_close","reason":"x"}`:  fault.NotFound, // its scope is lacking: looks unknown
		`{"tool":"shop_report","reason":"x"}`: fault.Edition,
	} {
		tooltest.Fault(t, cat, coder, "capability_request", args, want)
	}
	for args, parameter := range map[string]string{
		`{"tool":"shop_order"}`:               "reason",
		`{"tool":"shop_order","reason":"  "}`: "reason",
		`{"reason":"x"}`:                      "tool",
		`{"tool":"shop_order","reason":"` + strings.Repeat("x", 501) + `"}`: "reason",
		`{"tool":"shop_order","reason":"x","agent_id":"lead"}`:              "agent_id", // for oneself only
	} {
		tooltest.Invalid(t, cat, coder, "capability_request", args, parameter)
	}
	exec(t, db, `update agents set denied_tools = '{shop_order}' where id = 'coder'`)
	if f := tooltest.Fault(t, cat, coder, "capability_request", order, fault.NotFound); f.Message != "unknown tool: shop_order" {
		t.Errorf("a denied tool must look unknown: %s", f.Message)
	}
	if n := count(t, db, `select count(*) from approvals`); n != 0 {
		t.Errorf("%d requests were filed", n)
	}
}

// C28: where nobody may approve it is said at once, with the setting.
func TestCapabilityRequest_C28_no_approver(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	scoped(t, db)
	exec(t, db, `update agents set approver = 'none' where id = 'coder'`)
	f := tooltest.Fault(t, cat, tooltest.Who("coder"), "capability_request", order, fault.NotConfigured)
	if !strings.Contains(f.Message, "pawgate agent set coder --approver operator") {
		t.Errorf("it does not name the setting: %s", f.Message)
	}
}

func TestCapabilityRequest_no_self_grant(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	scoped(t, db)
	id := tooltest.OK[requested](t, cat, tooltest.Who("coder"), "capability_request", order).ApprovalID
	self := caller.Caller{Agent: "coder", Credential: "k2", Scopes: []string{"*", caller.ScopeApprove, caller.ScopeOperator}}
	tooltest.Fault(t, cat, self, "tool_approve", `{"approval_id":"`+id+`","decision":"approve"}`, "self_approval")
	tooltest.Invalid(t, cat, approver(), "tool_approve", `{"approval_id":"`+id+`","decision":"approve","for_minutes":5,"same":[]}`, "same")
}

func TestCapabilityRequest_crowded(t *testing.T) {
	t.Parallel()
	db, cat := inShop(t)
	scoped(t, db)
	exec(t, db, `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
		select 'a' || n, 'coder', 'k', 't', '', '', now() + interval '1 hour' from generate_series(1, 20) n`)
	tooltest.Fault(t, cat, tooltest.Who("coder"), "capability_request", order, "too_many_pending")
	exec(t, db, `update approvals set expires_at = now() where id = 'a7'`)
	tooltest.OK[requested](t, cat, tooltest.Who("coder"), "capability_request", order)
}

func TestCapabilityRequest_many_at_once(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	setup(t, pool)
	scoped(t, pool)
	table := tool.Assemble(shopOn(pool))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if out := table.Call(t.Context(), tooltest.Who("coder"), "capability_request", []byte(order)); out.OK == nil {
				t.Errorf("got %+v", out.Fault)
			}
		})
	}
	wg.Wait()
	if n := count(t, pool, `select count(*) from approvals`); n != 1 {
		t.Errorf("twenty requests at once made %d cards", n)
	}
}

// A stop ends what waits, of those that it covers.
func TestEmergencyStop_ends_pending_approvals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"one_agent", `{"action":"stop","agent_id":"coder"}`, "coder:cancelled lead:pending"},
		{"everyone", `{"action":"stop"}`, "coder:cancelled lead:cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			id := g.pending("odoo_search", `{}`)
			done := g.pending("odoo_search", `{"limit":1}`)
			g.decide(`{"approval_id":"` + done + `","decision":"deny"}`)
			g.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
				values ('alead', 'lead', 'k', 't', '', '', now() + interval '1 hour')`)
			got := tooltest.OK[struct {
				Cancelled int `json:"approvals_cancelled"`
			}](t, g.cat, operator(), "emergency_stop", c.args)
			if want := strings.Count(c.want, "cancelled"); got.Cancelled != want {
				t.Errorf("it says %d were ended, want %d", got.Cancelled, want)
			}
			var states string
			if err := g.db.QueryRow(t.Context(), `select string_agg(agent_id || ':' || state, ' ' order by agent_id) from approvals where state <> 'denied'`).Scan(&states); err != nil {
				t.Fatal(err)
			}
			if states != c.want {
				t.Errorf("got %s, want %s", states, c.want)
			}
			f := tooltest.Fault(t, g.cat, approver(), "tool_approve", `{"approval_id":"`+id+`","decision":"approve"}`, fault.Conflict)
			if f.Fields["state"] != "cancelled" {
				t.Errorf("got %v", f.Fields)
			}
			if v := g.call("odoo_search", "v1", `{}`); v.Verdict != "pending" || v.ID == id {
				t.Errorf("after the stop the call asks anew: %+v", v)
			}
		})
	}
}

// A stop and approvals at the same time: each is one or the other, for good.
func TestEmergencyStop_beside_approvals(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	cat := setup(t, pool)
	exec(t, pool, `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at)
		select 'arace' || n, 'coder', 'k', 't', '', '', now() + interval '1 hour' from generate_series(10, 29) n`)
	table := tool.Assemble(cat)
	var wg sync.WaitGroup
	for n := 10; n < 30; n++ {
		wg.Go(func() {
			out := table.Call(t.Context(), approver(), "tool_approve", fmt.Appendf(nil, `{"approval_id":"arace%d","decision":"approve"}`, n))
			if out.Fault != nil && out.Fault.Reason != fault.Conflict || out.Invalid != nil {
				t.Errorf("got %+v", out)
			}
		})
	}
	wg.Go(func() {
		table.Call(t.Context(), operator(), "emergency_stop", []byte(`{"action":"stop"}`))
	})
	wg.Wait()
	if n := count(t, pool, `select count(*) from approvals where state not in ('approved', 'cancelled')`); n != 0 {
		t.Errorf("%d are neither approved nor cancelled", n)
	}
	// Whatever the stop met as pending stays cancelled.
	left := count(t, pool, `select count(*) from approvals where state = 'approved'`)
	for n := 10; n < 30; n++ {
		table.Call(t.Context(), approver(), "tool_approve", fmt.Appendf(nil, `{"approval_id":"arace%d","decision":"approve"}`, n))
	}
	if n := count(t, pool, `select count(*) from approvals where state = 'approved'`); n != left {
		t.Errorf("%d were approved after the stop", n-left)
	}
}
