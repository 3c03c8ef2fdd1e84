package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/tool/tooltest"
)

type agentList struct {
	Agents []struct {
		AgentID     string `json:"agent_id"`
		DisplayName string `json:"display_name"`
		Role        string `json:"role"`
		State       string `json:"state"`
		ReportsTo   string `json:"reports_to"`
		Stopped     bool   `json:"stopped"`
	} `json:"agents"`
	NextCursor string `json:"next_cursor"`
}

func (l agentList) ids() []string {
	ids := []string{}
	for _, a := range l.Agents {
		ids = append(ids, a.AgentID)
	}
	return ids
}

func TestListAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		who  caller.Caller
		args string
		want []string
	}{
		{"AUTH-04_itself_and_those_below", tooltest.Who("ceo"), `{}`, []string{"ceo", "clerk", "coder", "lead"}},
		{"AUTH-04_not_those_above_or_beside", tooltest.Who("lead"), `{}`, []string{"coder", "lead"}},
		{"nobody_below", tooltest.Who("coder"), `{}`, []string{"coder"}},
		{"archived_too", tooltest.Who("lead"), `{"include_archived":true}`, []string{"coder", "lead", "old"}},
		{"archived_as_a_string", tooltest.Who("lead"), `{"include_archived":"true"}`, []string{"coder", "lead", "old"}},
		{"operator_sees_everyone", operator(), `{}`, []string{"ceo", "clerk", "coder", "lead", "stranger"}},
		{"unknown_caller_sees_nothing", tooltest.Who("nobody"), `{}`, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := tooltest.OK[agentList](t, setup(t).cat, c.who, "list_agents", c.args)
			if diff := cmp.Diff(c.want, got.ids()); diff != "" {
				t.Errorf("agents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListAgents_shows_no_list_and_no_source(t *testing.T) {
	t.Parallel()
	out := string(tooltest.Call(t, setup(t).cat, operator(), "list_agents", `{}`).OK)
	for _, hidden := range []string{"memory_*", "odoo_*", "hunter2", "allowed_tools"} {
		if strings.Contains(out, hidden) {
			t.Errorf("the answer holds %q: %s", hidden, out)
		}
	}
}

func TestListAgents_empty_is_a_list(t *testing.T) {
	t.Parallel()
	out := tooltest.Call(t, setup(t).cat, tooltest.Who("nobody"), "list_agents", `{}`)
	if diff := cmp.Diff(json.RawMessage(`{"agents":[]}`), out.OK); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestListAgents_pages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var got []string
	args := map[string]any{"limit": 2}
	for range 5 {
		page := tooltest.OK[agentList](t, b.cat, operator(), "list_agents", args)
		got = append(got, page.ids()...)
		if page.NextCursor == "" {
			break
		}
		args["cursor"] = page.NextCursor
	}
	if diff := cmp.Diff([]string{"ceo", "clerk", "coder", "lead", "stranger"}, got); diff != "" {
		t.Errorf("agents over all pages (-want +got):\n%s", diff)
	}
	tooltest.Invalid(t, b.cat, operator(), "list_agents", `{"limit":501}`, "limit")
}

func TestListAgents_marks_the_stopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into stops (agent_id, stopped_by) values ('coder', 'test')`)
	got := tooltest.OK[agentList](t, b.cat, tooltest.Who("lead"), "list_agents", `{}`)
	stopped := map[string]bool{}
	for _, a := range got.Agents {
		stopped[a.AgentID] = a.Stopped
	}
	if diff := cmp.Diff(map[string]bool{"coder": true, "lead": false}, stopped); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}

// A circle of superiors, which only hand-written SQL can make, must not hang.
func TestListAgents_survives_a_circle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `update agents set reports_to = 'coder' where id = 'ceo'`)
	got := tooltest.OK[agentList](t, b.cat, tooltest.Who("coder"), "list_agents", `{}`)
	if diff := cmp.Diff([]string{"ceo", "clerk", "coder", "lead"}, got.ids()); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
}
