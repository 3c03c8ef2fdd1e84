package operator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAuditList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.DB.Exec(t.Context(), `insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, decision, outcome, reason) values
		(1, '', '', 'outcome', '00000000-0000-7000-8000-000000000001', $1, 'r1', 'http', 'bot', 'tools/call', 'memory_search', 'allowed', 'ok', ''),
		(2, '', '', 'outcome', '00000000-0000-7000-8000-000000000002', $1, 'r2', 'http', 'bot', 'tools/call', 'memory_store', 'refused', '', 'denied'),
		(3, '', '', 'outcome', '00000000-0000-7000-8000-000000000003', $2, 'r3', 'http', 'ceo', 'tools/call', 'odoo_search', 'allowed', 'fault', 'unavailable')`,
		noon.Add(-time.Hour), noon.Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		want       []string
	}{
		{"newest_first", `{"since":"2026-11-01"}`, []string{"memory_store", "memory_search", "odoo_search"}},
		{"agent", `{"agent":"ceo"}`, []string{"odoo_search"}},
		{"tool", `{"tool":"memory_search"}`, []string{"memory_search"}},
		{"tools_by_prefix", `{"tool":"memory_*"}`, []string{"memory_store", "memory_search"}},
		{"decision", `{"decision":"refused"}`, []string{"memory_store"}},
		{"since_a_day", `{"since":"24h","tool":"*"}`, []string{"memory_store", "memory_search"}},
		{"since_a_time", `{"since":"2026-12-01T11:30:00Z"}`, []string{}},
	} {
		if diff := cmp.Diff(c.want, calls(t, b, c.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	b.fails("audit list", `{"since":"yesterday"}`, "since")
	b.fails("audit list", `{"cursor":"x"}`, "cursor")
	b.fails("audit list", `{"tool":"mem*"}`, "tool")
	b.fails("audit list", `{"limit":501}`, "limit")
}

// calls lists the tools of the rows that no operator made.
func calls(t *testing.T, b bench, args string) []string {
	t.Helper()
	type page struct{ Rows []struct{ Door, Tool string } }
	got := []string{}
	for _, r := range ok[page](b, "audit list", args).Rows {
		if r.Door != "operator" {
			got = append(got, r.Tool)
		}
	}
	return got
}

func TestAuditList_pages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.DB.Exec(t.Context(), `insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, decision)
		select n, '', '', 'outcome', gen_random_uuid(), timestamptz '2026-11-01' + (n / 3) * interval '1 microsecond', 'r' || n, 'http', 'bot', 'tools/call', 't' || n, 'allowed'
		from generate_series(1, 10) n`); err != nil {
		t.Fatal(err)
	}
	seen, cursor := map[string]bool{}, ""
	for range 10 {
		type page struct {
			Rows       []struct{ Tool string }
			NextCursor string `json:"next_cursor"`
		}
		p := ok[page](b, "audit list", `{"agent":"bot","limit":3,"cursor":"`+cursor+`"}`)
		for _, r := range p.Rows {
			if seen[r.Tool] {
				t.Errorf("%s came twice", r.Tool)
			}
			seen[r.Tool] = true
		}
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 rows were seen: %v", len(seen), seen)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	type state struct {
		State   string
		Changed bool
		Stops   []struct {
			AgentID   string `json:"agent_id"`
			Reason    string
			StoppedBy string `json:"stopped_by"`
		}
	}
	got := ok[state](b, "stop", `{"agent_id":"bot","reason":"loop"}`)
	if got.State != "stopped" || !got.Changed || len(got.Stops) != 1 || got.Stops[0].StoppedBy != "local:tester" || got.Stops[0].Reason != "loop" {
		t.Errorf("stop: %+v", got)
	}
	if got := ok[state](b, "stop", `{"agent_id":"bot"}`); got.Changed {
		t.Error("a second stop is no change")
	}
	if got := ok[state](b, "status", `{}`); got.State != "running" || len(got.Stops) != 1 {
		t.Errorf("status: %+v", got)
	}
	if got := ok[state](b, "resume", `{"agent_id":"bot"}`); got.State != "running" || !got.Changed {
		t.Errorf("resume: %+v", got)
	}
	if got := ok[state](b, "stop", `{}`); got.State != "stopped" {
		t.Errorf("stop of all: %+v", got)
	}
	b.fails("stop", `{"agent_id":"nobody"}`, "not_found")
	b.fails("stop", `{"reason":"`+strings.Repeat("x", 501)+`"}`, "reason")
}
