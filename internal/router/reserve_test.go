package router_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/router"
)

// write is a tools/call of probe_write; with a key it is a repeatable one.
func write(input, key string) string {
	meta := ""
	if key != "" {
		meta = fmt.Sprintf(`,"_meta":{"pawgate/idempotencyKey":%q}`, key)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe_write","arguments":{"input":%q}%s}}`, input, meta)
}

// requireApproval makes alice's writes need an operator's approval.
func (g *gate) requireApproval() {
	g.Helper()
	g.exec(`update agents set approval_required_tools = '{probe_write}'`)
}

// decide decides an approval as an operator would.
func (g *gate) decide(id, state string) {
	g.Helper()
	g.exec(`update approvals set state = $2, decided_by = 'op', decided_at = now() where id = $1 and state = 'pending' and expires_at > now()`, id, state)
}

// TestApproval: the life of an approval (C29, C34, C35): asked once, decided
// anywhere, matched by the call itself, used once, never held open.
func TestApproval(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	first := g.post(write("a", "")).wantFault(t, "approval_required")
	id, _ := first["approval_id"].(string)
	if id == "" || first["expires_at"] == nil {
		t.Fatalf("no approval in %v", first)
	}
	if again := g.post(write("a", "")).wantFault(t, "approval_required"); again["approval_id"] != id {
		t.Errorf("a second card: %v", again)
	}
	other := g.post(write("b", "")).wantFault(t, "approval_required")
	if other["approval_id"] == id {
		t.Error("AUTH-15: other arguments got the same approval")
	}
	if bob := g.post(callBody("probe_write", `{"input":"a"}`), as(bobKey)); bob.Error == nil {
		t.Errorf("bob: %s", bob.Body)
	}
	if g.probe.ran.Load() != 0 {
		t.Fatal("it ran before anybody approved")
	}
	g.decide(id, "approved")
	g.router = newSecondInstance(g)
	g.post(write("b", "")).wantFault(t, "approval_required")
	g.post(write("a", "")).wantOK(t)
	if third := g.post(write("a", "")).wantFault(t, "approval_required"); third["approval_id"] == id {
		t.Error("AUTH-15: one approval was good for two calls")
	}
	g.decide(other["approval_id"].(string), "denied")
	g.exec(`update approvals set reason = 'too expensive' where id = $1`, other["approval_id"])
	if denied := g.post(write("b", "")).wantFault(t, "denied"); !strings.Contains(denied["error"].(string), "too expensive") {
		t.Errorf("denied: %v", denied)
	}
	if n := g.probe.ran.Load(); n != 1 {
		t.Errorf("%d calls ran", n)
	}
}

// TestApprovalExpires: AUTH-19: after its time an approval is worth nothing and
// the same call asks anew.
func TestApprovalExpires(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.exec(`update approvals set state = 'approved', expires_at = now() - interval '1 second' where id = $1`, id)
	if again := g.post(write("a", "")).wantFault(t, "approval_required"); again["approval_id"] == id {
		t.Error("an expired approval was offered again")
	}
	if g.probe.ran.Load() != 0 {
		t.Error("it ran")
	}
}

// TestApprovalOfDefinition: AUTH-23: an approval holds for the tool as it was
// published then.
func TestApprovalOfDefinition(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.decide(id, "approved")
	g.exec(`update approvals set definition = '\x00' where id = $1`, id) // as if the tool had changed since
	g.post(write("a", "")).wantFault(t, "approval_required")
}

// TestDurableApproval: C32: this tool, this target, for an hour.
func TestDurableApproval(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.exec(`update approvals set state = 'approved', covers = '{"input":"a"}', covers_until = now() + interval '1 hour' where id = $1`, id)
	g.post(write("a", "")).wantOK(t)
	g.post(write("a", "")).wantOK(t)
	g.post(write("b", "")).wantFault(t, "approval_required")
}

// TestApprovalUsedOnce: many retries of one approved call run it once.
func TestApprovalUsedOnce(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	g.unlimited()
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.decide(id, "approved")
	second := newSecondInstance(g)
	var succeeded atomic.Int64
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			h := g.router
			if i%2 == 1 {
				h = second
			}
			if r := g.through(h, write("a", "")); !r.Result.IsError && r.Error == nil {
				succeeded.Add(1)
			}
		})
	}
	group.Wait()
	if ran := g.probe.ran.Load(); ran != 1 || succeeded.Load() != 1 {
		t.Errorf("ran %d times, %d successes", ran, succeeded.Load())
	}
}

// TestCrashAfterUse: a call that was approved, begun and lost is never begun
// again.
func TestCrashAfterUse(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	id := g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string)
	g.exec(`update approvals set state = 'used', used_at = now() - interval '10 minutes', expires_at = now() + interval '1 minute' where id = $1`, id)
	g.post(write("a", "")).wantFault(t, "outcome_unknown")
	g.exec(`update approvals set used_at = now() where id = $1`, id)
	g.post(write("a", "")).wantFault(t, "in_progress")
	if g.probe.ran.Load() != 0 {
		t.Error("it ran")
	}
}

// TestNoApprover: C28: the error names the setting, at once.
func TestNoApprover(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	g.exec(`update agents set approver = 'none'`)
	if f := g.post(write("a", "")).wantFault(t, "not_configured"); !strings.Contains(f["error"].(string), "--approver") {
		t.Errorf("fault: %v", f)
	}
}

// TestTooManyPending: an agent cannot bury the person who decides.
func TestTooManyPending(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	for i := range 20 {
		g.post(write(fmt.Sprint(i), "")).wantFault(t, "approval_required")
	}
	g.post(write("one more", "")).wantFault(t, "too_many_pending")
	g.post(write("3", "")).wantFault(t, "approval_required") // those that are pending can still be asked for
}

// TestRules: the argument rules of an agent, through the gate.
func TestRules(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set rules = '[
		{"tool":"probe_*","effect":"forbid","when":[{"arg":"input","op":"starts_with","value":"rm "}]},
		{"tool":"probe_write","effect":"ask","when":[{"arg":"input","op":"contains","value":"prod"}]}]'`)
	g.post(write("ls", "")).wantOK(t)
	g.post(write("rm -rf", "")).wantFault(t, "forbidden_by_rule")
	g.post(write("deploy prod", "")).wantFault(t, "approval_required")
	g.post(write("rm prod", "")).wantFault(t, "forbidden_by_rule")
	t.Run("rules that cannot be read refuse", func(t *testing.T) {
		g.exec(`update agents set rules = '[{"tool":5}]'`)
		if r := g.post(write("ls", "")); r.Status != 503 {
			t.Errorf("HTTP %d %s", r.Status, r.Body)
		}
	})
}

// TestGrants: a scoped tool needs a grant that is alive.
func TestGrants(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set scoped_tools = '{probe_write}'`)
	g.post(write("a", "")).wantFault(t, "grant_required")
	g.exec(`insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, state, expires_at, covers_until)
		values ('g1', 'grant', 'alice', 'key-alice', 'probe_write', '', '', 'approved', now() + interval '1 hour', now() + interval '1 hour')`)
	g.post(write("a", "")).wantOK(t)
	g.exec(`update approvals set covers_until = now() - interval '1 second'`)
	g.post(write("a", "")).wantFault(t, "grant_required")
	g.exec(`update approvals set covers_until = now() + interval '1 hour', state = 'revoked'`)
	g.post(write("a", "")).wantFault(t, "grant_required")
}

// TestRepeatedWrite: the same key gives the first outcome and runs nothing
// twice (MSG-18).
func TestRepeatedWrite(t *testing.T) {
	g := newGate(t)
	first := g.post(write("a", "k1")).Body
	if again := g.post(write("a", "k1")).Body; again != first {
		t.Errorf("first %s\nagain %s", first, again)
	}
	g.post(write("b", "k1")).wantFault(t, "conflict")
	g.post(write("a", "k2")).wantOK(t)
	t.Run("of another caller is another key", func(t *testing.T) {
		g.exec(`update agents set denied_tools = '{}'`)
		g.post(write("a", "k1"), as(bobKey)).wantOK(t)
	})
	t.Run("Claude Code's id of a tool use", func(t *testing.T) {
		body := strings.ReplaceAll(write("c", "toolu_1"), "pawgate/idempotencyKey", "claudecode/toolUseId")
		g.post(body).wantOK(t)
		g.post(body).wantOK(t)
	})
	if n := g.probe.ran.Load(); n != 4 {
		t.Errorf("%d writes ran, want 4", n)
	}
	if n := g.count(`select count(*) from audit where outcome = 'replayed'`); n != 2 {
		t.Errorf("%d repetitions on record", n)
	}
	t.Run("a day later the key is forgotten", func(t *testing.T) {
		g.exec(`update idempotency set started_at = now() - interval '25 hours' where key like '%k2'`)
		g.post(write("z", "k2")).wantOK(t)
	})
	t.Run("an attempt that was lost is not begun again", func(t *testing.T) {
		g.exec(`update idempotency set finished_at = null, deadline = now() - interval '1 second' where key like '%k1' and agent_id = 'alice'`)
		g.post(write("a", "k1")).wantFault(t, "outcome_unknown")
	})
}

// TestRepeatedWhileRunning: twenty repetitions on two instances while the
// first attempt runs: one run, one outcome for all.
func TestRepeatedWhileRunning(t *testing.T) {
	g := newGate(t)
	g.unlimited()
	g.probe.onWrite = func() { time.Sleep(300 * time.Millisecond) }
	second := newSecondInstance(g)
	bodies := make(chan string, 20)
	for i := range 20 {
		go func() {
			h := g.router
			if i%2 == 1 {
				h = second
			}
			bodies <- g.through(h, write("a", "k")).Body
		}()
	}
	seen := map[string]bool{}
	for range 20 {
		seen[<-bodies] = true
	}
	if n := g.probe.ran.Load(); n != 1 || len(seen) != 1 {
		t.Errorf("ran %d times, %d different answers: %v", n, len(seen), seen)
	}
}

// through posts as alice to an instance.
func (g *gate) through(h *router.Router, body string) reply {
	other := *g
	other.router = h
	return other.post(body)
}

// TestLimits: G67: a tool's own limit is a result that says when to come back;
// a flood is HTTP 429.
func TestLimits(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set limits = '{"read": {"burst": 5, "per_minute": 60}}' where id = 'alice'`)
	for range 5 {
		g.post(callBody("probe_echo", `{}`)).wantOK(t)
	}
	f := g.post(callBody("probe_echo", `{}`)).wantFault(t, "rate_limited")
	if wait, _ := f["retry_after_ms"].(float64); wait <= 0 || wait > 1000 {
		t.Errorf("retry after %v ms", f["retry_after_ms"])
	}
	g.post(write("a", "")).wantOK(t)                            // another class
	g.post(callBody("probe_echo", `{}`), as(bobKey)).wantOK(t)  // another agent
	g.exec(`update buckets set at = at - interval '2 seconds'`) // time passes
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
	g.exec(`update agents set limits = '{"credential": {"burst": 2, "per_minute": 60}}' where id = 'bob'`)
	g.exec(`delete from buckets`)
	for range 2 {
		g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, as(bobKey))
	}
	r := g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, as(bobKey))
	r.wantError(t, http.StatusTooManyRequests, -32029, "too many requests")
	if r.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
	}
}

// TestLimitAtTheEdge: exactly the burst passes, however many come at once, on
// however many instances.
func TestLimitAtTheEdge(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set limits = '{"read": {"burst": 7, "per_minute": 0.001}}' where id = 'alice'`)
	second := newSecondInstance(g)
	var passed atomic.Int64
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			h := g.router
			if i%2 == 1 {
				h = second
			}
			if r := g.through(h, callBody("probe_echo", `{}`)); !r.Result.IsError {
				passed.Add(1)
			}
		})
	}
	group.Wait()
	if passed.Load() != 7 {
		t.Errorf("%d passed, want 7", passed.Load())
	}
}

// TestFailedLogins: an address that guesses keys must wait.
func TestFailedLogins(t *testing.T) {
	g := newGate(t)
	statuses := map[int]int{}
	for range 30 {
		statuses[g.post(callBody("probe_echo", `{}`), as("paw_test_guess")).Status]++
	}
	if statuses[401] != 20 || statuses[429] != 10 {
		t.Errorf("statuses %v", statuses)
	}
	g.post(callBody("probe_echo", `{}`)).wantOK(t) // those who have a key are not locked out
}

// TestAuditChain: every call leaves a decision and an outcome, and an edited,
// removed or reordered row is found.
func TestAuditChain(t *testing.T) {
	g := newGate(t)
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantOK(t)
	g.post(write("a", "")).wantOK(t)
	g.post(callBody("nope", `{}`))
	g.post(callBody("probe_echo", `{}`), as(bobKey)).wantOK(t)
	if n := g.count(`select count(*) from audit where agent_id = 'alice'`); n != 5 {
		t.Errorf("%d rows for two calls and a refusal", n)
	}
	broken := func() int { return g.count(`select count(*) from audit_verify()`) }
	if n := broken(); n != 0 {
		t.Fatalf("%d broken places in an honest trail", n)
	}
	for name, sql := range map[string]string{
		"edited":               `update audit set tool = 'other' where agent_id = 'alice' and seq = 2`,
		"edited arguments":     `update audit set arguments = '{"text":"b"}' where agent_id = 'alice' and seq = 2`,
		"removed in between":   `delete from audit where agent_id = 'alice' and seq = 3`,
		"removed at the end":   `delete from audit where agent_id = 'alice' and seq = 5`,
		"removed at the start": `delete from audit where agent_id = 'alice' and seq = 1`,
		"reordered":            `update audit set seq = case seq when 2 then 3 else 2 end where agent_id = 'alice' and seq in (2, 3)`,
		"moved to another":     `update audit set agent_id = 'bob', seq = 3 where agent_id = 'alice' and seq = 5`,
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := g.db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(t.Context())
			if _, err := tx.Exec(t.Context(), `alter table audit disable trigger audit_append_only`); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := tx.QueryRow(t.Context(), `select count(*) from audit_verify()`).Scan(&n); err != nil || n == 0 {
				t.Errorf("not found (%v)", err)
			}
		})
	}
	t.Run("append-only", func(t *testing.T) {
		for _, sql := range []string{`update audit set tool = 'x'`, `delete from audit`} {
			if _, err := g.db.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	t.Run("dropping old months keeps the chain", func(t *testing.T) {
		if n := g.count(`select count(*) from audit_prune((now() + interval '2 months')::date)`); n == 0 {
			t.Error("nothing was dropped")
		}
		g.post(callBody("probe_echo", `{}`)).wantOK(t)
		if n := broken(); n != 0 {
			t.Errorf("%d broken places", n)
		}
	})
}
