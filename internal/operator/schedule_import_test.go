package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestScheduleImport: the weekdays of DuDuClaw, where 1 is Sunday, become the
// usual ones, and every changed line says so.
func TestScheduleImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	type line struct{ Name, AgentID, Cron, Note, Error, Next string }
	type imported struct {
		Imported, Refused int
		Tasks             []struct {
			Name, Cron, Note, Error string
			AgentID                 string   `json:"agent_id"`
			NextRuns                []string `json:"next_runs"`
		}
	}
	got := ok[imported](b, "schedule import", encode(t, map[string]any{"agent_id": "bot", "timezone": "Asia/Taipei", "source": `
		{"name": "workdays", "cron": "0 9 * * 2-6", "task": "report", "agent_id": "default"}
		{"name": "daily", "cron": "0 9 * * *", "task": "report", "cron_timezone": "UTC", "enabled": false}
		{"name": "never", "cron": "0 0 30 2 *", "task": "x"}
		{"name": "stranger", "cron": "0 9 * * *", "task": "x", "agent_id": "nobody"}`}))
	var lines []line
	for _, l := range got.Tasks {
		next := ""
		if len(l.NextRuns) > 0 {
			next = l.NextRuns[0]
		}
		lines = append(lines, line{l.Name, l.AgentID, l.Cron, l.Note, l.Error, next})
	}
	want := []line{
		{"workdays", "bot", "0 9 * * 1-5", "0 9 * * 2-6 is written 0 9 * * 1-5 here, where 0 and 7 are Sunday and 1 is Monday", "", "2026-12-02T09:00:00+08:00"},
		{"daily", "bot", "0 9 * * *", "", "", "2026-12-02T09:00:00Z"},
		{"never", "bot", "0 0 30 2 *", "", `"0 0 30 2 *" is never due: no such date comes any more`, ""},
		{"stranger", "nobody", "0 9 * * *", "", "no agent nobody that reports to you", ""},
	}
	if diff := cmp.Diff(want, lines); diff != "" || got.Imported != 2 || got.Refused != 2 {
		t.Errorf("%d imported, %d refused (-want +got):\n%s", got.Imported, got.Refused, diff)
	}
	type list struct {
		Tasks []struct{ Name, State string }
	}
	states := map[string]string{}
	for _, l := range ok[list](b, "schedule list", `{}`).Tasks {
		states[l.Name] = l.State
	}
	if diff := cmp.Diff(map[string]string{"workdays": "active", "daily": "paused"}, states); diff != "" {
		t.Errorf("there now (-want +got):\n%s", diff)
	}
	if got := ok[imported](b, "schedule import", encode(t, map[string]any{"source": `[{"name": "x", "cron": "0 9 * * *", "task": "x"}]`})); got.Refused != 1 {
		t.Errorf("without an agent: %+v", got)
	}
	for _, source := range []string{``, `nonsense`, `[1]`, `{"name":1}`} {
		b.fails("schedule import", encode(t, map[string]any{"source": source}), "source")
	}
}
