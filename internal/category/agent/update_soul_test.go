package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/agent"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type soulWritten struct {
	Version      int    `json:"version"`
	Replaces     int    `json:"replaces"`
	Changed      bool   `json:"changed"`
	SHA256       string `json:"sha256"`
	SHA256Before string `json:"sha256_before"`
	Bytes        int    `json:"bytes"`
	Diff         string `json:"diff"`
	DiffCut      bool   `json:"diff_cut"`
}

func TestAgentUpdateSoul(t *testing.T) {
	t.Parallel()
	b := setup(t)
	write := func(args string) soulWritten {
		t.Helper()
		return tooltest.OK[soulWritten](t, b.cat, tooltest.Who("lead"), "agent_update_soul", args)
	}
	first := write(`{"agent_id":"coder","content":"# Coder\nYou code.\n","reason":"begin"}`)
	if first.Version != 1 || first.Replaces != 0 || !first.Changed || first.Bytes != 18 || len(first.SHA256) != 64 {
		t.Errorf("first: %+v", first)
	}
	second := write(`{"agent_id":"coder","content":"# Coder\nYou code in Go.\n","if_version":1}`)
	wantDiff := "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n # Coder\n-You code.\n+You code in Go.\n"
	if diff := cmp.Diff(wantDiff, second.Diff); diff != "" || second.SHA256Before != first.SHA256 {
		t.Errorf("second: %+v (-want +got):\n%s", second, diff)
	}
	if same := write(`{"agent_id":"coder","content":"# Coder\nYou code in Go.\n"}`); same.Changed || same.Version != 2 || same.Diff != "" {
		t.Errorf("the same text again: %+v", same)
	}
	if back := write(`{"agent_id":"coder","rollback_to":1}`); back.Version != 3 || back.SHA256 != first.SHA256 {
		t.Errorf("rollback: %+v", back)
	}
	got := b.text(t, `select string_agg(version || ' ' || written_by || ' ' || note, '|' order by version) from agent_souls`)
	if want := "1 lead (test) begin|2 lead (test) |3 lead (test) back to version 1."; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	status := tooltest.OK[struct {
		Soul struct {
			Version int
			SHA256  string
			Content string
		}
	}](t, b.cat, tooltest.Who("coder"), "agent_status", `{"agent_id":"coder","include_soul":true}`)
	if status.Soul.Version != 3 || status.Soul.SHA256 != first.SHA256 || status.Soul.Content != "# Coder\nYou code.\n" {
		t.Errorf("status shows %+v", status.Soul)
	}
}

// The text comes back byte for byte: marks, line ends, white space.
func TestAgentUpdateSoul_verbatim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, text := range []string{"\ufeff# 店員\r\n\r\n你是店員。\r\n", "  no line's end", "tabs\t\tand\u200bzero width\n\n\n", "👩‍💻\u202e"} {
		tooltest.OK[soulWritten](t, b.cat, tooltest.Who("lead"), "agent_update_soul", map[string]string{"agent_id": "coder", "content": text})
		if got := b.text(t, `select content from agent_souls order by version desc limit 1`); got != text {
			t.Errorf("kept %q, want %q", got, text)
		}
	}
}

func TestAgentUpdateSoul_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, args, parameter string }{
		{"neither", `{"agent_id":"coder"}`, "content"},
		{"empty", `{"agent_id":"coder","content":" \n\t"}`, "content"},
		{"both", `{"agent_id":"coder","content":"x","rollback_to":1}`, "rollback_to"},
		{"MCP-17_nul", `{"agent_id":"coder","content":"a\u0000b"}`, "content"},
		{"lone_surrogate", `{"agent_id":"coder","content":"a\ud800b"}`, "arguments"},
		{"10_MB", `{"agent_id":"coder","content":"` + strings.Repeat("a", 10<<20) + `"}`, "content"},
		{"bytes_count", `{"agent_id":"coder","content":"` + strings.Repeat("漢", 30_000) + `"}`, "content"},
	} {
		t.Run(c.name, func(t *testing.T) { tooltest.Invalid(t, b.cat, operator(), "agent_update_soul", c.args, c.parameter) })
	}
	for _, c := range []struct {
		name, who, args string
		want            fault.Reason
	}{
		{"AUTH-04_a_superior", "coder", `{"agent_id":"lead","content":"x"}`, fault.NotFound},
		{"AUTH-04_beside", "lead", `{"agent_id":"clerk","content":"x"}`, fault.NotFound},
		{"unknown", "lead", `{"agent_id":"nobody","content":"x"}`, fault.NotFound},
		{"archived", "lead", `{"agent_id":"old","content":"x"}`, fault.Conflict},
		{"version_that_there_is_not", "lead", `{"agent_id":"coder","rollback_to":9}`, fault.NotFound},
		{"version_of_another", "lead", `{"agent_id":"coder","content":"x","if_version":1}`, fault.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) { tooltest.Fault(t, b.cat, tooltest.Who(c.who), "agent_update_soul", c.args, c.want) })
	}
	if n := b.number(t, `select count(*) from agent_souls`); n != 0 {
		t.Errorf("%d versions were written all the same", n)
	}
}

func TestAgentUpdateSoul_long_diff_is_cut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := func(word string) string { return strings.Repeat(word+"\n", 4000) }
	tooltest.OK[soulWritten](t, b.cat, operator(), "agent_update_soul", map[string]string{"agent_id": "coder", "content": long("old 漢")})
	got := tooltest.OK[soulWritten](t, b.cat, operator(), "agent_update_soul", map[string]string{"agent_id": "coder", "content": long("new 漢")})
	if !got.DiffCut || len(got.Diff) > 16<<10 || !strings.HasSuffix(got.Diff, "\n") {
		t.Errorf("cut %v, %d bytes, ends in %q", got.DiffCut, len(got.Diff), got.Diff[len(got.Diff)-4:])
	}
}

// Many writers at once: every text is kept, in a version of its own; of those
// who name the version they saw, one gets through.
func TestAgentUpdateSoul_loses_nothing(t *testing.T) {
	t.Parallel()
	pool := clonePool(t)
	cat := agent.New(pool, clock)
	write := func(extra string) []tool.Outcome {
		return together(8, func(i int) tool.Outcome {
			return tooltest.Call(t, cat, tooltest.Who("boss"), "agent_update_soul", fmt.Sprintf(`{"agent_id":"bot","content":"text %d %s"%s}`, i, strings.ReplaceAll(extra, `"`, ""), extra))
		})
	}
	for _, out := range write("") {
		if out.OK == nil {
			t.Errorf("refused: %+v", out)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), `select count(distinct content) from agent_souls where version between 1 and 8`).Scan(&n); err != nil || n != 8 {
		t.Errorf("%d of 8 texts are kept: %v", n, err)
	}
	good := 0
	for _, out := range write(`,"if_version":8`) {
		if out.OK != nil {
			good++
		} else if out.Fault == nil || out.Fault.Reason != fault.Conflict {
			t.Errorf("want a conflict, got %+v", out)
		}
	}
	if good != 1 {
		t.Errorf("%d writers replaced version 8", good)
	}
}

// History has an end, so an agent cannot fill the disk with it.
func TestAgentUpdateSoul_keeps_200_versions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into agent_souls (agent_id, version, content, written_by) select 'coder', n, 'text ' || n, 'test' from generate_series(1, 200) n`)
	tooltest.OK[soulWritten](t, b.cat, operator(), "agent_update_soul", `{"agent_id":"coder","content":"text 201"}`)
	if got := b.text(t, `select min(version) || '-' || max(version) from agent_souls`); got != "2-201" {
		t.Errorf("versions %s are kept, want 2-201", got)
	}
}
