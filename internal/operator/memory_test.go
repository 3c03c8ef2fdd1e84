package operator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/memory"
	"pawgate/internal/tool/tooltest"
)

type page struct {
	Lines    []json.RawMessage
	Next     int
	Memories int
}

func (b bench) importLines(agent, lines string, dry bool) memory.Imported {
	b.t.Helper()
	args, err := json.Marshal(map[string]any{"agent_id": agent, "lines": lines, "dry_run": dry})
	if err != nil {
		b.t.Fatal(err)
	}
	return ok[memory.Imported](b, "memory import", string(args))
}

func TestMemoryExportImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	const lines = `{"type":"memory","id":"m_1","content":"the code is HIDDENWORD"}
{"type":"memory","content":" "}
{"type":"alias","canonical":"Robert","alias":"Bob"}`
	want := memory.Imported{Read: 3, Stored: 1, Aliases: 1, Skipped: map[string]int{"blank content": 1}}
	if diff := cmp.Diff(want, b.importLines("bot", lines, true)); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if got := ok[page](b, "memory export", `{"agent_id":"bot"}`); got.Memories != 0 {
		t.Errorf("the dry run kept %d memories", got.Memories)
	}
	if diff := cmp.Diff(want, b.importLines("bot", lines, false)); diff != "" {
		t.Errorf("import (-want +got):\n%s", diff)
	}
	first := ok[page](b, "memory export", `{"agent_id":"bot"}`)
	if first.Memories != 1 || !strings.Contains(string(first.Lines[0]), "HIDDENWORD") {
		t.Errorf("export: %+v", first)
	}
	b.fails("memory import", `{"agent_id":"nobody","lines":"{}"}`, "not_found")
	b.fails("memory export", `{"agent_id":"nobody"}`, "not_found")
	trail, err := json.Marshal(ok[rows](b, "audit list", `{}`))
	if err != nil || strings.Contains(string(trail), "HIDDENWORD") || !strings.Contains(string(trail), "memory.import") {
		t.Errorf("the trail (%v): %s", err, trail)
	}
}

// numbers is an embedder without a model.
type numbers struct{}

func (numbers) Model() string { return "numbers" }

func (numbers) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i := range texts {
		vectors[i] = []float32{1, 0}
	}
	return vectors, nil
}

func TestMemoryBackfill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.importLines("bot", `{"type":"memory","content":"one"}`+"\n"+`{"type":"memory","content":"two"}`, false)
	if message := b.fails("memory backfill", `{"agent_id":"bot"}`, "not_configured"); !strings.Contains(message, "EMBEDDINGS_URL") {
		t.Errorf("got %q", message)
	}
	b.Embedder = numbers{}
	if got := ok[memory.Backfilled](b, "memory backfill", `{"agent_id":"bot"}`); got.Done != 2 || got.Missing != 0 {
		t.Errorf("got %+v", got)
	}
	if got := ok[memory.Backfilled](b, "memory backfill", `{"agent_id":"bot"}`); got.Done != 0 {
		t.Errorf("again: %+v", got)
	}
}

func TestMemoryLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	type limits struct {
		MaxMemories int `json:"max_memories"`
		MaxPerDay   int `json:"max_per_day"`
	}
	usual := limits{memory.MaxMemories, memory.MaxPerDay}
	for _, step := range []struct {
		args string
		want limits
	}{
		{`{"agent_id":"bot"}`, usual},
		{`{"agent_id":"bot","max_per_day":1}`, limits{usual.MaxMemories, 1}},
		{`{"agent_id":"bot","max_memories":10}`, limits{10, 1}},
	} {
		if got := ok[limits](b, "memory limits", step.args); got != step.want {
			t.Errorf("%s: got %+v, want %+v", step.args, got, step.want)
		}
	}
	c := memory.New(b.DB, clock)
	tooltest.OK[map[string]any](t, c, tooltest.Who("bot"), "memory_store", `{"content":"the first of the day"}`)
	tooltest.Fault(t, c, tooltest.Who("bot"), "memory_store", `{"content":"the second of the day"}`, "over_quota")
	if got := ok[limits](b, "memory limits", `{"agent_id":"bot","clear":true}`); got != usual {
		t.Errorf("cleared: %+v", got)
	}
	b.fails("memory limits", `{"agent_id":"bot","clear":true,"max_per_day":5}`, "clear")
}

func TestMemoryShare(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"clerk"}`)
	ok[noted](b, "agent create", `{"agent_id":"analyst"}`)
	c := memory.New(b.DB, clock)
	tooltest.OK[map[string]any](t, c, tooltest.Who("clerk"), "memory_store", `{"content":"the harbour opens at six","tags":["public"]}`)
	search := func(reason string) {
		t.Helper()
		const args = `{"query":"harbour","agent_id":"clerk"}`
		if reason != "" {
			tooltest.Fault(t, c, tooltest.Who("analyst"), "memory_search", args, "not_shared")
			return
		}
		if got := tooltest.OK[struct{ Memories []any }](t, c, tooltest.Who("analyst"), "memory_search", args); len(got.Memories) != 1 {
			t.Errorf("found %v", got)
		}
	}
	search("not_shared")
	for range 2 { // a share is replaced, not piled up
		ok[map[string]any](b, "memory share", `{"owner_id":"clerk","agent_id":"analyst","tag":["public"],"until":"90d"}`)
	}
	search("")
	shares := ok[struct{ Shares []map[string]any }](b, "memory shares", `{"agent_id":"analyst"}`).Shares
	if len(shares) != 1 || shares[0]["granted_by"] != "local:tester" || shares[0]["until"] != "2027-03-01T12:00:00Z" {
		t.Errorf("shares: %v", shares)
	}
	for args, refused := range map[string]string{
		`{"owner_id":"clerk","agent_id":"clerk"}`:                        "agent_id",
		`{"owner_id":"clerk","agent_id":"nobody"}`:                       "not_found",
		`{"owner_id":"nobody","agent_id":"clerk"}`:                       "not_found",
		`{"owner_id":"clerk","agent_id":"analyst","tag":[""]}`:           "tag",
		`{"owner_id":"clerk","agent_id":"analyst","until":"yesterday"}`:  "until",
		`{"owner_id":"clerk","agent_id":"analyst","until":"2020-01-01"}`: "until",
	} {
		b.fails("memory share", args, refused)
	}
	for _, changed := range []bool{true, false} {
		if got := ok[struct{ Changed bool }](b, "memory unshare", `{"owner_id":"clerk","agent_id":"analyst"}`); got.Changed != changed {
			t.Errorf("unshare: %+v", got)
		}
		search("not_shared")
	}
	methods := map[string]int{}
	for _, r := range ok[rows](b, "audit list", `{}`).Rows {
		methods[r.Method+" "+r.Outcome]++
	}
	if methods["memory.share ok"] != 2 || methods["memory.unshare ok"] != 2 {
		t.Errorf("the trail: %v", methods)
	}
}
