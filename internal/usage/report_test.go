package usage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

func report(t *testing.T, db postgres.DB, q usage.Query) []usage.Line {
	t.Helper()
	lines, err := usage.Report(t.Context(), db, q)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestReportAddsUp: whatever the window, the zone and the grouping, a report is
// the sum of its rows, however many of them are folded, pruned or changed.
func TestReportAddsUp(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2025, 11, 20, 0, 0, 0, 0, time.UTC)
	var rows []usage.Row
	for i := range 600 {
		r := row(fmt.Sprint("r", i))
		r.At = start.Add(time.Duration(random.Int64N(int64(130 * 24 * time.Hour)))).Truncate(time.Microsecond)
		r.Agent, r.User = fmt.Sprint("bot", i%3), fmt.Sprint("user", i%7)
		r.Input = random.Int64N(10_000)
		if i%11 == 0 {
			r.Model = "unknown"
		}
		rows = append(rows, r)
	}
	record(t, db, rows[:400]...)
	execute(t, db, "select usage_fold(250)")
	record(t, db, rows[200:]...)
	execute(t, db, "update usage set output = output + 1 where source_id like 'r1%'")
	zones := []string{"UTC", "Asia/Taipei", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"}
	groups := []usage.Group{usage.Total, usage.ByAgent, usage.ByUser, usage.ByModel, usage.ByDay, usage.ByWeek, usage.ByMonth}
	for i := range 60 {
		from := start.Add(time.Duration(random.Int64N(int64(100 * 24 * time.Hour)))).Truncate(time.Microsecond)
		to := from.Add(time.Duration(1 + random.Int64N(int64(60*24*time.Hour)))).Truncate(time.Microsecond)
		zone, err := time.LoadLocation(zones[i%len(zones)])
		if err != nil {
			t.Fatal(err)
		}
		q := usage.Query{From: from, To: to, Zone: zone, Group: groups[i%len(groups)], Split: i%2 == 0}
		if i%3 == 0 {
			q.Agents = []string{"bot1"}
		}
		got := map[string]int64{}
		for _, l := range report(t, db, q) {
			got["requests"] += l.Requests
			got["input"] += l.Input
			got["output"] += l.Output
			got["cost"] += l.Cost
			got["unpriced"] += l.Unpriced
			if !l.Period.IsZero() && (l.Period.After(to) || l.Period.In(zone).Hour() != 0) {
				t.Errorf("%s: period %s", zone, l.Period.In(zone))
			}
		}
		want := map[string]int64{}
		for name, sum := range map[string]string{"requests": "count(*)", "input": "sum(input)", "output": "sum(output)", "cost": "sum(cost_micros)", "unpriced": "count(*) filter (where cost_micros is null)"} {
			if n := one[int64](t, db, "select coalesce("+sum+", 0)::bigint from usage where at >= $1 and at < $2 and ($3::text[] is null or agent_id = any ($3))", from, to, q.Agents); n != 0 {
				want[name] = n
			}
		}
		for name := range got {
			if got[name] == 0 {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s to %s in %s by %q (-rows +report):\n%s", from, to, zone, q.Group, diff)
		}
	}
}

// Days are those of the zone: 25 hours when the clocks go back.
func TestReportDays(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	zone, err := time.LoadLocation("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"2026-10-24T23:30:00+02:00", "2026-10-25T00:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T23:30:00+01:00", "2026-10-26T00:00:00+01:00"} {
		r := row(fmt.Sprint(i))
		if r.At, err = time.Parse(time.RFC3339, at); err != nil {
			t.Fatal(err)
		}
		record(t, db, r)
	}
	lines := report(t, db, usage.Query{From: time.Date(2026, 10, 24, 0, 0, 0, 0, zone), To: time.Date(2026, 10, 27, 0, 0, 0, 0, zone), Zone: zone, Group: usage.ByDay})
	got := map[string]int64{}
	for _, l := range lines {
		got[l.Period.In(zone).Format(time.RFC3339)] = l.Requests
	}
	want := map[string]int64{"2026-10-24T00:00:00+02:00": 1, "2026-10-25T00:00:00+02:00": 4, "2026-10-26T00:00:00+01:00": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	hours := report(t, db, usage.Query{From: time.Date(2026, 10, 25, 0, 0, 0, 0, zone), To: time.Date(2026, 10, 26, 0, 0, 0, 0, zone), Zone: zone, Group: usage.ByHour})
	if len(hours) != 4 {
		t.Errorf("%d hours with usage, want the repeated one twice: %+v", len(hours), hours)
	}
}

// What no kept sum knows is read from the rows, for a month at most.
func TestReportSessionsAndUsers(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	a, b := row("a"), row("b")
	a.Session, a.User, b.Session, b.User = "s1", "ann", "s2", "bob"
	record(t, db, a, b)
	q := usage.Query{From: noon.Add(-time.Hour), To: noon.Add(time.Hour), Group: usage.BySession}
	if got := report(t, db, q); len(got) != 2 || got[0].Cost != 4500 {
		t.Errorf("sessions: %+v", got)
	}
	q.Group, q.User = usage.ByModel, "ann"
	if got := report(t, db, q); len(got) != 1 || got[0].Key != "claude-test" || got[0].Requests != 1 {
		t.Errorf("models of a user: %+v", got)
	}
	q.From, q.Group, q.User = noon.AddDate(-1, 0, 0), usage.BySession, ""
	if _, err := usage.Report(t.Context(), db, q); err == nil {
		t.Error("a year of single rows was read")
	}
}

// The same id of another agent changes nothing.
func TestRecordOfAnotherAgent(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	record(t, db, row("a"))
	other := row("a")
	other.Agent, other.Output = "mallory", 1_000_000
	if got := record(t, db, other); got != (usage.Recorded{}) {
		t.Errorf("%+v", got)
	}
	if got := one[int64](t, db, "select output from usage"); got != 100 {
		t.Errorf("output %d", got)
	}
}
