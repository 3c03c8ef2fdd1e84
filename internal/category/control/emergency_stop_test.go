package control_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/category/control"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/work"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

const staff = `insert into agents (id, reports_to) values
	('ceo', null), ('lead', 'ceo'), ('coder', 'lead'), ('stranger', null)`

func setup(t *testing.T, db postgres.DB) tool.Category {
	t.Helper()
	if _, err := db.Exec(t.Context(), staff); err != nil {
		t.Fatalf("seed: %v", err)
	}
	return control.New(db, func() time.Time { return noon })
}

func operator() caller.Caller {
	return caller.Caller{Agent: "stranger", Credential: "k9", Scopes: []string{"*", caller.ScopeOperator}}
}

type result struct {
	State, Target string
	Changed       bool
	Stops         []stop
	Note          string
}

type stop struct {
	Scope     string
	AgentID   string `json:"agent_id"`
	Reason    string
	StoppedBy string `json:"stopped_by"`
	Since     time.Time
}

// step is one call in a row of calls on the same database.
type step struct {
	who  caller.Caller
	args string
	want string // "stopped", "running", or the reason of a fault
	// changed is checked on success only.
	changed bool
}

func TestEmergencyStop(t *testing.T) {
	t.Parallel()
	ceo, lead, coder, op := tooltest.Who("ceo"), tooltest.Who("lead"), tooltest.Who("coder"), operator()
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"agent_stops_itself_and_asks", []step{
			{coder, `{"action":"stop","agent_id":"coder","reason":"loop"}`, "stopped", true},
			{coder, `{"action":"status"}`, "stopped", false},
			{coder, `{"action":"stop","agent_id":"coder"}`, "stopped", false},
		}},
		{"second_stop_is_no_error", []step{
			{lead, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
			{ceo, `{"action":"stop","agent_id":"coder"}`, "stopped", false},
			{op, `{"action":"stop","agent_id":"coder"}`, "stopped", false},
		}},
		{"those_below_through_others", []step{
			{ceo, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
			{ceo, `{"action":"status","agent_id":"lead"}`, "running", false},
		}},
		{"AUTH-04_not_those_above_or_beside", []step{
			{coder, `{"action":"stop","agent_id":"lead"}`, "not_found", false},
			{lead, `{"action":"stop","agent_id":"stranger"}`, "not_found", false},
			{lead, `{"action":"status","agent_id":"ceo"}`, "not_found", false},
			{lead, `{"action":"stop","agent_id":"nobody"}`, "not_found", false},
			{op, `{"action":"status"}`, "running", false},
		}},
		{"only_an_operator_stops_everyone", []step{
			{ceo, `{"action":"stop"}`, "denied", false},
			{op, `{"action":"stop","reason":"incident"}`, "stopped", true},
			{op, `{"action":"stop"}`, "stopped", false},
			{coder, `{"action":"status"}`, "stopped", false},
			{op, `{"action":"resume"}`, "running", true},
			{op, `{"action":"resume"}`, "running", false},
			{coder, `{"action":"status"}`, "running", false},
		}},
		{"only_an_operator_resumes", []step{
			{ceo, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
			{ceo, `{"action":"resume","agent_id":"coder"}`, "denied", false},
			{coder, `{"action":"resume","agent_id":"coder"}`, "denied", false},
			{ceo, `{"action":"resume"}`, "denied", false},
			{op, `{"action":"resume","agent_id":"coder"}`, "running", true},
		}},
		{"stopped_agent_does_nothing_else", []step{
			{op, `{"action":"stop","agent_id":"lead"}`, "stopped", true},
			{lead, `{"action":"stop","agent_id":"coder"}`, "stopped", false}, // the fault, see below
			{op, `{"action":"status","agent_id":"coder"}`, "running", false},
			{op, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
		}},
		{"resuming_one_leaves_the_others", []step{
			{op, `{"action":"stop"}`, "stopped", true},
			{op, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
			{op, `{"action":"resume","agent_id":"coder"}`, "stopped", true},
			{op, `{"action":"stop","agent_id":"coder"}`, "stopped", true},
			{op, `{"action":"resume"}`, "running", true},
			{coder, `{"action":"status"}`, "stopped", false},
		}},
		{"unknown_agent", []step{
			{op, `{"action":"stop","agent_id":"nobody"}`, "not_found", false},
			{op, `{"action":"resume","agent_id":"nobody"}`, "not_found", false},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cat := setup(t, postgrestest.New(t))
			for i, s := range c.steps {
				out := tooltest.Call(t, cat, s.who, "emergency_stop", s.args)
				if out.Fault != nil {
					if string(out.Fault.Reason) != s.want {
						t.Fatalf("step %d %s %s: got fault %s (%s), want %s", i, s.who.Agent, s.args, out.Fault.Reason, out.Fault.Message, s.want)
					}
					continue
				}
				var r result
				if err := json.Unmarshal(out.OK, &r); err != nil {
					t.Fatalf("decode %s: %v", out.OK, err)
				}
				if r.State != s.want || r.Changed != s.changed {
					t.Fatalf("step %d %s %s: got %s changed %t, want %s %t", i, s.who.Agent, s.args, r.State, r.Changed, s.want, s.changed)
				}
			}
		})
	}
}

func TestEmergencyStop_record(t *testing.T) {
	t.Parallel()
	cat := setup(t, postgrestest.New(t))
	tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop","reason":" incident 7 "}`)
	tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop","agent_id":"stranger"}`)
	tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop","agent_id":"lead"}`)
	got := tooltest.OK[result](t, cat, tooltest.Who("lead"), "emergency_stop", `{"action":"status"}`)
	for i, s := range got.Stops {
		if time.Since(s.Since).Abs() > time.Minute {
			t.Errorf("stopped at %s, which is not the database's clock", s.Since)
		}
		got.Stops[i].Since = time.Time{}
	}
	want := result{State: "stopped", Target: "lead", Stops: []stop{
		{Scope: "all", Reason: "incident 7", StoppedBy: "stranger (k9)"},
		{Scope: "agent", AgentID: "lead", StoppedBy: "stranger (k9)"}, // and not the stranger's
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestEmergencyStop_refuses_broken_arguments(t *testing.T) {
	t.Parallel()
	cat := setup(t, postgrestest.New(t))
	tooltest.Invalid(t, cat, operator(), "emergency_stop", `{}`, "action")
	tooltest.Invalid(t, cat, operator(), "emergency_stop", `{"action":"halt"}`, "action")
	tooltest.Invalid(t, cat, operator(), "emergency_stop", `{"action":"stop","reason":"`+strings.Repeat("x", 501)+`"}`, "reason")
}

func TestEmergencyStop_definition(t *testing.T) {
	t.Parallel()
	d := control.New(nil, time.Now).Tools[0].Definition
	if !d.Exempt {
		t.Error("it must run while a stop is in force")
	}
	if diff := cmp.Diff(tool.Hints{Destructive: true, Idempotent: true}, d.Hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
}

// The stop is in the database and nowhere else: another process sees it.
func TestEmergencyStop_survives_a_restart(t *testing.T) {
	t.Parallel()
	url := postgrestest.CloneURL(t)
	first := postgrestest.Pool(t, postgres.Config{URL: url})
	tooltest.OK[result](t, setup(t, first), operator(), "emergency_stop", `{"action":"stop"}`)
	first.Close()
	second := control.New(postgrestest.Pool(t, postgres.Config{URL: url, Pooled: true}), time.Now) // and behind a pooler
	tooltest.OK[result](t, second, operator(), "emergency_stop", `{"action":"stop","agent_id":"ceo"}`)
	tooltest.OK[result](t, second, operator(), "emergency_stop", `{"action":"resume","agent_id":"ceo"}`)
	if got := tooltest.OK[result](t, second, tooltest.Who("coder"), "emergency_stop", `{"action":"status"}`); got.State != "stopped" {
		t.Errorf("after a restart the state is %s", got.State)
	}
}

func TestEmergencyStop_many_at_once(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	cat := setup(t, pool)
	var changed, wg = make(chan bool, 16), sync.WaitGroup{}
	for range cap(changed) {
		wg.Go(func() {
			out := tool.Assemble(cat).Call(t.Context(), operator(), "emergency_stop", []byte(`{"action":"stop"}`))
			changed <- strings.Contains(string(out.OK), `"changed":true`)
			if out.OK == nil {
				t.Errorf("a stop at the same time failed: %+v", out.Fault)
			}
		})
	}
	wg.Wait()
	close(changed)
	n := 0
	for c := range changed {
		if c {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of 16 calls say that they made the stop, want 1", n)
	}
}

func TestEmergencyStop_stopped_agent_is_told_so(t *testing.T) {
	t.Parallel()
	cat := setup(t, postgrestest.New(t))
	tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop"}`)
	tooltest.Fault(t, cat, tooltest.Who("lead"), "emergency_stop", `{"action":"stop","agent_id":"coder"}`, fault.Stopped)
}

// TestEmergencyStop_of_an_instance_whose_clock_is_wrong: work that was queued
// while the stop was written is older than it and ends, also once the stop is
// lifted; what was queued afterwards does not.
func TestEmergencyStop_of_an_instance_whose_clock_is_wrong(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			setup(t, db)
			cat := control.New(db, func() time.Time { return time.Now().Add(off) })
			const queue = `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, created_at) values
				(gen_random_uuid(), 'prompt', $1, 'coder', 'lead', '{}', gen_random_uuid(), clock_timestamp())`
			var before time.Time
			if err := db.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&before); err != nil {
				t.Fatal(err)
			}
			tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop"}`)
			exec(t, db, queue, "slipped in")
			exec(t, db, `update work set created_at = $1`, before)
			tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"resume"}`)
			exec(t, db, queue, "afterwards")
			if _, err := work.Sweep(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			got, err := postgres.All[struct{ Source, State string }](t.Context(), db, `select source, state from work order by created_at`, nil)
			want := []struct{ Source, State string }{{"slipped in", "cancelled"}, {"afterwards", "queued"}}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestEmergencyStop_ends_work: the work of the stopped agent, and what it
// asked others for, and nobody else's.
func TestEmergencyStop_ends_work(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args string
		want       int
		left       []string
	}{
		{"of one agent", `{"action":"stop","agent_id":"coder"}`, 3, []string{"lead for ceo"}},
		{"of all", `{"action":"stop"}`, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			cat := setup(t, db)
			exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, lease_until) values
				(gen_random_uuid(), 'prompt', 'send_to_agent', 'coder', 'ceo', '{}', gen_random_uuid(), 'queued', null),
				(gen_random_uuid(), 'prompt', 'send_to_agent', 'coder', 'lead', '{}', gen_random_uuid(), 'running', now() + interval '1 minute'),
				(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'coder', '{}', gen_random_uuid(), 'queued', null),
				(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'queued', null)`)
			got := tooltest.OK[struct {
				Killed int `json:"work_cancelled"`
			}](t, cat, operator(), "emergency_stop", c.args)
			rows, err := postgres.All[struct{ Who string }](t.Context(), db, `select agent_id || ' for ' || from_agent as who from work where finished_at is null`, nil)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, r := range rows {
				left = append(left, r.Who)
			}
			if diff := cmp.Diff(c.left, left); diff != "" || got.Killed != c.want {
				t.Errorf("%d ended, want %d; left (-want +got):\n%s", got.Killed, c.want, diff)
			}
		})
	}
}
