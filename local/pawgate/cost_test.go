package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

// written writes a file of the test's own.
func written(t *testing.T, name, text string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func (x *terminal) has(want ...string) {
	x.t.Helper()
	words := strings.Join(strings.Fields(x.stdout), " ")
	for _, w := range want {
		if !strings.Contains(words, w) {
			x.t.Errorf("%q is not in:\n%s%s", w, x.stdout, x.stderr)
		}
	}
}

func TestCostPrices(t *testing.T) {
	x := open(t)
	list := written(t, "prices.json", `{"my-model": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06}, "free": {"input_cost_per_token": 0, "output_cost_per_token": 0}}`)
	x.ok("cost", "prices", "import", list, "--label", "ours")
	x.has("added 1", "free 1", "version ours")
	x.ok("cost", "prices", "import", list)
	x.has("added 0", "changed 0")
	x.ok("cost", "prices", "set", "tool:web_search", "--unit", "0.008")
	x.ok("cost", "prices", "list", "tool:")
	x.has("tool:web_search", "0.008")
	x.ok("cost", "prices", "list", "my-")
	x.has("my-model", "2", "8", "ours")
	x.ok("cost", "reprice")
	x.has("repriced 0")
	for _, line := range [][]string{
		{"cost", "prices", "import", written(t, "x.json", "hello")},
		{"cost", "prices", "import", list, "--from", "yesterday"},
		{"cost", "prices", "set", "m", "--input", "cheap"},
		{"cost", "prices", "set", "m"},
		{"cost", "prune", "--older-than-days", "30"},
	} {
		if status := x.run(line...); status != exitUsage {
			t.Errorf("%v: exit %d %s", line, status, x.stderr)
		}
	}
	x.ok("cost", "prune", "--older-than-days", "800")
	x.has("pruned 0")
	if status := x.run("cost", "prices"); status != exitUsage || !strings.Contains(x.stderr, "prices import") {
		t.Errorf("cost prices: exit %d %s", status, x.stderr)
	}
}

func TestCostImport(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "clerk")
	session := written(t, "s.jsonl", `{"type":"assistant","sessionId":"s1","requestId":"req_1","timestamp":"2026-11-30T10:00:01.000Z","message":{"id":"msg_1","model":"claude-haiku-4-5","content":"PRIVATE","usage":{"input_tokens":1000,"output_tokens":100}}}
broken
`)
	x.ok("cost", "import", "clerk", session, "--user-id", "ann")
	x.has("added 1", "known 0")
	if !strings.Contains(x.stderr, "1 of 2 lines") {
		t.Error(x.stderr)
	}
	x.ok("cost", "import", "clerk", session)
	x.has("added 0", "known 1")
	x.ok("cost", "recent", "clerk")
	x.has("claude-haiku-4-5", "$0.0015", "ann")
	x.ok("audit", "list", "--json")
	if strings.Contains(x.stdout, "PRIVATE") || strings.Contains(x.stdout, "req_1") {
		t.Errorf("the trail keeps too much: %s", x.stdout)
	}
	if status := x.run("cost", "import", "nobody", session); status != exitFailed {
		t.Errorf("an unknown agent: exit %d", status)
	}
}

func TestBudgets(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "clerk")
	x.ok("budget", "set", "--agent-id", "clerk", "--limit", "25.00", "--timezone", "Asia/Taipei")
	x.ok("budget", "set", "--user-id", "*", "--limit", "1", "--period", "day", "--soft")
	x.ok("budget", "list")
	x.has("clerk", "$25.00", "$0.00", "month", "day", "ok")
	id := strings.Fields(strings.Split(x.stdout, "\n")[1])[0]
	x.ok("budget", "remove", id)
	x.has("changed yes")
	for _, line := range [][]string{
		{"budget", "set", "--agent-id", "clerk"},
		{"budget", "set", "--limit", "much"},
		{"budget", "set", "--limit", "-1"},
		{"budget", "set", "--limit", "1", "--timezone", "Mars"},
	} {
		if status := x.run(line...); status != exitUsage {
			t.Errorf("%v: exit %d %s", line, status, x.stderr)
		}
	}
	if status := x.run("budget", "set", "--agent-id", "nobody", "--limit", "1"); status != exitFailed {
		t.Errorf("an unknown agent: exit %d", status)
	}
}

// cost watch shows what was there and what comes, with a running sum.
func TestCostWatch(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	record := func(id string) {
		t.Helper()
		micros := int64(1500)
		if _, err := usage.Record(t.Context(), db, usage.Row{At: time.Now(), Agent: "clerk\x1b[31m", Model: "m", Input: 7, Reported: &micros, Source: "loop", ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	record("a")
	ctx, cancel := context.WithCancel(t.Context())
	reads := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- follow(ctx, writer(func(p []byte) { reads <- string(p) }), db, "", time.Millisecond) }()
	first := <-reads
	record("b")
	second := <-reads
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(first, "$0.0015") || !strings.Contains(second, "$0.003") || strings.ContainsRune(first+second, 0x1b) {
		t.Errorf("%q\n%q", first, second)
	}
	if bytes.Count([]byte(first), []byte("\n")) != 1 {
		t.Errorf("%q", first)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
