package control_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/decision"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

func offer(t *testing.T, db postgres.DB, agent, message string) string {
	t.Helper()
	id, err := decision.Record(t.Context(), db, decision.Offer{AgentID: agent, Message: message, Question: "Which plan?",
		Options: []decision.Option{{Key: "A", Content: "the cheap one"}, {Key: "Plan-B", Content: "the good one"}}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

type choice struct {
	DecisionID string `json:"decision_id"`
	Question   string
	Options    []decision.Option
	ExpiresAt  time.Time `json:"expires_at"`
}

func choices(t *testing.T, cat tool.Category, agent, args string) []choice {
	t.Helper()
	return tooltest.OK[struct{ Decisions []choice }](t, cat, tooltest.Who(agent), "decision_list", args).Decisions
}

func TestDecisionList(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	if got := choices(t, cat, "coder", `{}`); len(got) != 0 {
		t.Errorf("nothing was offered: %+v", got)
	}
	for i := range 12 {
		exec(t, db, `update decisions set created_at = created_at - interval '1 minute'`)
		offer(t, db, "coder", fmt.Sprint(i))
	}
	offer(t, db, "lead", "x") // AUTH-20: not shown to others
	newest := offer(t, db, "coder", "11")
	got := choices(t, cat, "coder", `{}`)
	if len(got) != 10 || got[0].DecisionID != newest {
		t.Errorf("%d choices, the first is %s, want 10 and %s", len(got), got[0].DecisionID, newest)
	}
	want := []decision.Option{{Key: "A", Content: "the cheap one"}, {Key: "Plan-B", Content: "the good one"}}
	if diff := cmp.Diff(want, got[0].Options); diff != "" || got[0].Question != "Which plan?" {
		t.Errorf("%q (-want +got):\n%s", got[0].Question, diff)
	}
	exec(t, db, `update decisions set expires_at = clock_timestamp() where id = $1`, newest)
	if got := choices(t, cat, "coder", `{"limit":"50"}`); len(got) != 11 {
		t.Errorf("%d choices, want 11: an expired one is not open", len(got))
	}
	tooltest.Invalid(t, cat, tooltest.Who("coder"), "decision_list", `{"limit":51}`, "limit")
}

type resolved struct {
	ChosenKey     string `json:"chosen_key"`
	ChosenContent string `json:"chosen_content"`
	Question      string
	Changed       bool
}

func TestDecisionResolve(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	coder := tooltest.Who("coder")
	id := offer(t, db, "coder", "m")
	f := tooltest.Fault(t, cat, coder, "decision_resolve", `{"decision_id":"`+id+`","chosen_key":"C"}`, "unknown_key")
	if diff := cmp.Diff([]string{"A", "Plan-B"}, f.Fields["available"]); diff != "" {
		t.Errorf("available (-want +got):\n%s", diff)
	}
	want := resolved{ChosenKey: "Plan-B", ChosenContent: "the good one", Question: "Which plan?", Changed: true}
	if diff := cmp.Diff(want, tooltest.OK[resolved](t, cat, coder, "decision_resolve", `{"decision_id":"`+id+`","chosen_key":" plan-b"}`)); diff != "" {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
	want.Changed = false
	if diff := cmp.Diff(want, tooltest.OK[resolved](t, cat, coder, "decision_resolve", `{"decision_id":"`+id+`","chosen_key":"PLAN-B"}`)); diff != "" {
		t.Errorf("the same again (-want +got):\n%s", diff)
	}
	f = tooltest.Fault(t, cat, coder, "decision_resolve", `{"decision_id":"`+id+`","chosen_key":"A"}`, fault.Conflict)
	if f.Fields["chosen_key"] != "Plan-B" {
		t.Errorf("it does not tell what was chosen: %v", f.Fields)
	}
	if got := choices(t, cat, "coder", `{}`); len(got) != 0 {
		t.Errorf("a resolved choice is still open: %+v", got)
	}
	late := offer(t, db, "coder", "late")
	exec(t, db, `update decisions set expires_at = clock_timestamp() where id = $1`, late)
	tooltest.Fault(t, cat, coder, "decision_resolve", `{"decision_id":"`+late+`","chosen_key":"A"}`, "expired")
	tooltest.Fault(t, cat, coder, "decision_resolve", `{"decision_id":"never","chosen_key":"A"}`, fault.NotFound)
	tooltest.Invalid(t, cat, coder, "decision_resolve", `{"decision_id":"`+late+`"}`, "chosen_key")
}

// AUTH-20: another agent's choice is not found, its superior's either.
func TestDecisionResolve_AUTH_20_of_another_agent(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	id := offer(t, db, "coder", "m")
	for _, other := range []string{"lead", "stranger"} {
		for _, key := range []string{"A", "Z"} {
			tooltest.Fault(t, cat, tooltest.Who(other), "decision_resolve", `{"decision_id":"`+id+`","chosen_key":"`+key+`"}`, fault.NotFound)
		}
	}
}

func TestDecisionResolve_many_at_once(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	table := tool.Assemble(setup(t, pool))
	id := offer(t, pool, "coder", "m")
	var wg sync.WaitGroup
	changed := make(chan bool, 20)
	for i := range 20 {
		wg.Go(func() {
			key := []string{"A", "Plan-B"}[i%2]
			out := table.Call(t.Context(), tooltest.Who("coder"), "decision_resolve", []byte(`{"decision_id":"`+id+`","chosen_key":"`+key+`"}`))
			if out.OK == nil && (out.Fault == nil || out.Fault.Reason != fault.Conflict) {
				t.Errorf("got %+v", out)
			}
			changed <- strings.Contains(string(out.OK), `"changed":true`)
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
		t.Errorf("%d of 20 calls made the choice, want 1", n)
	}
}

type feedback struct {
	FeedbackID int64  `json:"feedback_id"`
	AgentID    string `json:"agent_id"`
	SignalType string `json:"signal_type"`
}

func TestSubmitFeedback(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	for _, c := range []struct{ who, args, about string }{
		{"coder", `{"signal_type":"positive","detail":"thanks 謝謝"}`, "coder"},
		{"lead", `{"signal_type":"correction","detail":"no tabs","agent_id":"coder"}`, "coder"},
		{"ceo", `{"signal_type":"negative","detail":"late","agent_id":"coder"}`, "coder"},
	} {
		got := tooltest.OK[feedback](t, cat, tooltest.Who(c.who), "submit_feedback", c.args)
		if got.AgentID != c.about || got.FeedbackID == 0 {
			t.Errorf("%s %s: %+v", c.who, c.args, got)
		}
	}
	if n := count(t, db, `select count(*) from feedback where agent_id = 'coder' and by_agent = 'ceo' and signal_type = 'negative' and detail = 'late' and credential_id = 'test'`); n != 1 {
		t.Errorf("the row does not say who said what: %d", n)
	}
	// Defect 28 there: any caller could write into any agent's prompt, at any length.
	for _, c := range []struct{ who, about string }{{"coder", "lead"}, {"lead", "stranger"}, {"lead", "nobody"}} {
		tooltest.Fault(t, cat, tooltest.Who(c.who), "submit_feedback", `{"signal_type":"positive","detail":"x","agent_id":"`+c.about+`"}`, fault.NotFound)
	}
	for args, parameter := range map[string]string{
		`{"signal_type":"great","detail":"x"}`:                                    "signal_type",
		`{"signal_type":"positive"}`:                                              "detail",
		`{"signal_type":"positive","detail":" \n"}`:                               "detail",
		`{"signal_type":"positive","detail":"` + strings.Repeat("字", 2001) + `"}`: "detail",
	} {
		tooltest.Invalid(t, cat, tooltest.Who("coder"), "submit_feedback", args, parameter)
	}
	tooltest.OK[feedback](t, cat, tooltest.Who("coder"), "submit_feedback", `{"signal_type":"positive","detail":"`+strings.Repeat("字", 2000)+`"}`)
}
