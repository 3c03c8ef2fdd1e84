//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/postgres/postgrestest"
)

// twoProcesses are two servers over one database, with a client of the same
// agent at each.
func twoProcesses(t *testing.T) (url string, clients [2]*client) {
	t.Helper()
	url = postgrestest.CloneURL(t)
	first := startInstance(t, "DATABASE_URL="+url)
	second := startInstance(t, "DATABASE_URL="+url)
	return url, [2]*client{newClient(first.MCP, first.newKey(t, "default")), newClient(second.MCP, second.newKey(t, "default"))}
}

// TestGateProcesses: what must hold between processes: one approval runs one
// call, a limit is one limit, a repeated write runs once, and a stop is in force
// with the next call everywhere.
func TestGateProcesses(t *testing.T) {
	url, clients := twoProcesses(t)
	set := func(sql string, args ...any) {
		query[int](t, url, "with x as ("+sql+" returning 1) select count(*)::int from x", args...)
	}
	everywhere := func(calls int, tool string, arguments any) (ok, faults map[string]int) {
		ok, faults = map[string]int{}, map[string]int{}
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range calls {
			group.Go(func() {
				r, err := clients[i%2].call(tool, arguments)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					faults[err.Error()]++
				case r.ok():
					ok[fmt.Sprint(r.content["memory_id"])]++
				default:
					faults[r.reason()]++
				}
			})
		}
		group.Wait()
		return ok, faults
	}

	t.Run("an approval runs one call", func(t *testing.T) {
		set(`update agents set approval_required_tools = '{memory_store}', approver = 'operator' where id = 'default'`)
		note := map[string]any{"content": "approved once, on 2 December"}
		if _, faults := everywhere(10, "memory_store", note); faults["approval_required"] != 10 {
			t.Fatalf("before the approval: %v", faults)
		}
		if n := query[int](t, url, `select count(*)::int from approvals`); n != 1 {
			t.Fatalf("%d cards for one call", n)
		}
		set(`update approvals set state = 'approved', decided_by = 'test', decided_at = now()`)
		ok, faults := everywhere(20, "memory_store", note)
		if len(ok) != 1 || total(ok) != 1 {
			t.Errorf("ran %v, refused %v", ok, faults)
		}
		set(`update agents set approval_required_tools = '{}' where id = 'default'`)
	})

	t.Run("a limit is one limit", func(t *testing.T) {
		set(`update agents set limits = '{"read": {"burst": 7, "per_minute": 0.001}}' where id = 'default'`)
		set(`delete from buckets`)
		ok, faults := everywhere(40, "list_agents", map[string]any{})
		if total(ok) != 7 || faults["rate_limited"] != 33 {
			t.Errorf("%d passed, refused %v", total(ok), faults)
		}
		set(`update agents set limits = '{}' where id = 'default'`)
	})

	t.Run("a stop is in force with the next call", func(t *testing.T) {
		unlimited(t, url)
		var took []time.Duration
		var late atomic.Int64
		for i := range 50 {
			stopped := time.Now()
			set(`insert into stops (agent_id, stopped_by) values ('default', 'test')`)
			if r, err := clients[i%2].call("list_agents", map[string]any{}); err != nil || r.reason() != "stopped" {
				late.Add(1)
			}
			took = append(took, time.Since(stopped))
			set(`update stops set resumed_at = now() where resumed_at is null`)
			if r, err := clients[(i+1)%2].call("list_agents", map[string]any{}); err != nil || !r.ok() {
				t.Fatalf("after the stop: %v %+v", err, r)
			}
		}
		slices.Sort(took)
		t.Logf("stop to refusal in another process: p50 %s, p99 %s", took[len(took)/2], took[len(took)*99/100])
		if late.Load() > 0 {
			t.Errorf("%d calls ran after a stop", late.Load())
		}
	})
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
