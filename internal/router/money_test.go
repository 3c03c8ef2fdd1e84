package router_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// budgetOf gives alice a hard daily budget and the probes a price, in
// micro-dollars.
func (g *gate) budgetOf(limit, price int64) {
	g.Helper()
	g.exec(`insert into usage_prices (version, name, unit) select 'test', 'tool:' || t, $1::bigint * 1000000 from unnest(array['probe_echo', 'probe_write']) t`, price)
	g.exec(`insert into budgets (id, agent_id, period, limit_micros) values ('b1', 'alice', 'day', $1)`, limit)
}

// TestBudget: a tool with a price is paid for from the agent's budget, a read
// and a write alike: held before, settled after, once.
func TestBudget(t *testing.T) {
	g := newGate(t)
	g.budgetOf(1_000_000, 400_000)
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantOK(t)
	g.post(write("a", "key")).wantOK(t)
	g.post(write("a", "key")).wantOK(t) // the first outcome again: it costs nothing, and the budget does not refuse it
	for name, body := range map[string]string{"read": callBody("probe_echo", `{"text":"b"}`), "write": write("b", "")} {
		refused := g.post(body).wantFault(t, "budget_exceeded") // G-65
		text, _ := refused["error"].(string)
		if !strings.Contains(text, "$0.80 of $1.00 are spent") || refused["resets_at"] == nil || refused["retry_after_ms"] == nil || refused["limit_micro_usd"] != float64(1_000_000) {
			t.Errorf("%s: %v", name, refused)
		}
	}
	if n := g.probe.ran.Load(); n != 2 {
		t.Errorf("%d calls ran", n)
	}
	if n := g.count(`select count(*) from usage where source = 'gate' and agent_id = 'alice' and cost_micros = 400000 and request_type = 'tool'`); n != 2 {
		t.Errorf("%d rows", n)
	}
	if n := g.count(`select held from budget_spent`); n != 0 {
		t.Errorf("%d are still held", n)
	}
	if n := g.count(`select count(*) from audit where reason = 'budget_exceeded' and decision = 'refused'`); n != 2 {
		t.Errorf("%d refusals on record", n)
	}
	// A write that was done before gives its outcome also when nothing is left.
	g.exec(`update budgets set limit_micros = 0`)
	g.post(write("a", "key")).wantOK(t)
}

// TestBudgetUsedUp: what models cost stops tools that cost nothing, too: for an
// agent that runs elsewhere it is the only stop there is.
func TestBudgetUsedUp(t *testing.T) {
	g := newGate(t)
	g.exec(`insert into budgets (id, agent_id, period, limit_micros) values ('b1', 'alice', 'month', 1000)`)
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantOK(t)
	g.exec(`select usage_record('[{"at": "now", "agent_id": "alice", "model": "m", "reported_micros": 1000, "source": "loop", "source_id": "x"}]')`)
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantFault(t, "budget_exceeded")
	g.post(write("a", "")).wantFault(t, "budget_exceeded")
	g.exec(`update budgets set hard = false`)
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantOK(t)
}

// TestBudgetBrokenArguments: what certainly did nothing costs nothing.
func TestBudgetBrokenArguments(t *testing.T) {
	g := newGate(t)
	g.budgetOf(1_000_000, 400_000)
	for range 5 {
		if r := g.post(callBody("probe_echo", `{"text":17,"other":1}`)); r.Error == nil {
			t.Fatalf("%s", r.Body)
		}
	}
	g.post(callBody("probe_echo", `{"text":"a"}`)).wantOK(t)
	if n := g.count(`select count(*) from usage`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestBudgetAtOnce: 64 calls at once, money for ten.
func TestBudgetAtOnce(t *testing.T) {
	g := newGate(t)
	g.budgetOf(10*100, 100)
	g.exec(`update agents set limits = '{"read": {"burst": 1000, "per_minute": 100000}, "write": {"burst": 1000, "per_minute": 100000}, "credential": {"burst": 1000, "per_minute": 100000}}'`)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if i%2 == 0 {
				g.post(callBody("probe_echo", fmt.Sprintf(`{"text":"%d"}`, i)))
			} else {
				g.post(write(fmt.Sprint(i), ""))
			}
		})
	}
	wg.Wait()
	if n := g.probe.ran.Load(); n != 10 {
		t.Errorf("%d calls ran, want 10", n)
	}
	if n := g.count(`select settled from budget_spent`); n != 1000 {
		t.Errorf("%d settled, want 1000", n)
	}
}
