package operator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/operator"
	"pawgate/internal/postgres/postgrestest"
)

func TestAgentCreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"boss"}`)
	got := ok[noted](b, "agent create", `{"agent_id":"bot","display_name":"小幫手","role":"worker","reports_to":"boss",
		"allow":["mcp__pawgate__memory_search","memory_*","memory_search"],"deny":["odoo_execute"]}`)
	want := noted{agentShown: agentShown{AgentID: "bot", DisplayName: "小幫手", Role: "worker", State: "active", ReportsTo: "boss",
		AllowedTools: []string{"memory_search", "memory_*"}, DeniedTools: []string{"odoo_execute"},
		ApprovalRequiredTools: []string{}, Changed: true}, Notes: []string{}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(noted{})); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
}

func TestAgentCreate_AUTH_06_may_call_nothing(t *testing.T) {
	t.Parallel()
	got := ok[noted](setup(t), "agent create", `{"agent_id":"bot"}`)
	if len(got.AllowedTools) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "may call no tool yet") {
		t.Errorf("got %+v", got)
	}
}

// edit is one change of a list and what is left afterwards.
type edit struct {
	command, args string
	allowed       []string
	denied        []string
	changed       bool
	note          string // part of some note
}

func TestAgentLists(t *testing.T) {
	t.Parallel()
	none := []string{}
	for _, c := range []struct {
		name  string
		edits []edit
	}{
		{"add_twice_and_remove", []edit{
			{"agent allow", `{"agent_id":"bot","patterns":["memory_search"]}`, []string{"memory_search"}, none, true, ""},
			{"agent allow", `{"agent_id":"bot","patterns":["memory_search"]}`, []string{"memory_search"}, none, false, ""},
			{"agent allow", `{"agent_id":"bot","patterns":["memory_search"],"remove":true}`, none, none, true, ""},
			{"agent allow", `{"agent_id":"bot","patterns":["memory_search"],"remove":true}`, none, none, false, "not in the list"},
		}},
		{"AUTH-05_allowing_never_touches_a_deny", []edit{
			{"agent deny", `{"agent_id":"bot","patterns":["odoo_*"]}`, none, []string{"odoo_*"}, true, ""},
			{"agent allow", `{"agent_id":"bot","patterns":["odoo_execute","*"]}`, []string{"odoo_execute", "*"}, []string{"odoo_*"}, true, "denied_tools has odoo_*, which wins"},
		}},
		{"prefix_may_wait_for_its_tools", []edit{
			{"agent deny", `{"agent_id":"bot","patterns":["os_*"]}`, none, []string{"os_*"}, true, "matches no tool"},
		}},
		{"removing_a_pattern_that_was_never_valid_here", []edit{
			{"agent allow", `{"agent_id":"bot","patterns":["*"]}`, []string{"*"}, none, true, ""},
			{"agent allow", `{"agent_id":"bot","patterns":["Bash"],"remove":true}`, []string{"*"}, none, false, "not in the list"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ok[noted](b, "agent create", `{"agent_id":"bot"}`)
			for i, e := range c.edits {
				got := ok[noted](b, e.command, e.args)
				if diff := cmp.Diff([]any{e.allowed, e.denied, e.changed}, []any{got.AllowedTools, got.DeniedTools, got.Changed}); diff != "" {
					t.Errorf("edit %d: allowed, denied, changed (-want +got):\n%s", i, diff)
				}
				if !strings.Contains(strings.Join(got.Notes, "\n"), e.note) {
					t.Errorf("edit %d: no note has %q: %q", i, e.note, got.Notes)
				}
			}
		})
	}
}

func TestAgentLists_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for _, c := range []struct{ pattern, want string }{
		{"memory_serch", "unknown tool memory_serch; did you mean memory_search?"},
		{"wholly_different", "unknown tool wholly_different"},
		{"mem*", "is no pattern"},
		{"*_search", "is no pattern"},
		{"memory*", "is no pattern"},
		{"Memory_Search", "is no pattern"},
		{"memory_search ; drop", "is no pattern"},
		{"mеmory_search", "is no pattern"}, // a Cyrillic letter
		{"mcp__a__mcp__b__memory_search", "is no pattern"},
		{"", "is no pattern"},
	} {
		for _, command := range []string{"agent allow", "agent deny"} {
			args, err := json.Marshal(map[string]any{"agent_id": "bot", "patterns": []string{c.pattern}})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.fails(command, string(args), "patterns"); !strings.Contains(got, c.want) {
				t.Errorf("%s %q: %q lacks %q", command, c.pattern, got, c.want)
			}
		}
	}
	b.fails("agent allow", `{"agent_id":"bot","patterns":[]}`, "patterns")
	b.fails("agent allow", `{"agent_id":"nobody","patterns":["*"]}`, "not_found")
}

func TestAgentSet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, args := range []string{`{"agent_id":"ceo"}`, `{"agent_id":"lead","reports_to":"ceo"}`, `{"agent_id":"coder","reports_to":"lead","allow":["*"]}`} {
		ok[noted](b, "agent create", args)
	}
	got := ok[noted](b, "agent set", `{"agent_id":"coder","state":"paused","role":"planner","reports_to":""}`)
	if got.State != "paused" || got.Role != "planner" || got.ReportsTo != "" || !got.Changed {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"*"}, got.AllowedTools); diff != "" {
		t.Errorf("allowed tools (-want +got):\n%s", diff)
	}
	idle := ok[noted](b, "agent set", `{"agent_id":"coder","heartbeat_enabled":true,"max_concurrent":2}`)
	if len(idle.Notes) != 1 || !strings.Contains(idle.Notes[0], "heartbeat_enabled for") || strings.Contains(idle.Notes[0], "max_concurrent") {
		t.Errorf("of what nothing acts on it is said %q", idle.Notes)
	}
	if again := ok[noted](b, "agent set", `{"agent_id":"coder","state":"paused"}`); again.Changed {
		t.Error("setting the same again is no change")
	}
	b.fails("agent set", `{"agent_id":"coder"}`, "arguments")
	b.fails("agent set", `{"agent_id":"coder","state":"deleted"}`, "state")
	b.fails("agent set", `{"agent_id":"ceo","reports_to":"lead"}`, "reports_to") // a circle
	b.fails("agent set", `{"agent_id":"ceo","reports_to":"ceo"}`, "reports_to")
	b.fails("agent set", `{"agent_id":"ceo","reports_to":"nobody"}`, "missing_superior")
}

// Two changes at once must not lose one another.
func TestAgentAllow_many_at_once(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: clock}}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"agent_id":"bot","patterns":["p%d_*"]}`, i)
			if _, err := b.Run(t.Context(), "", "agent deny", []byte(args)); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		})
	}
	wg.Wait()
	if got := ok[agentShown](b, "agent show", `{"agent_id":"bot"}`); len(got.DeniedTools) != 12 {
		t.Errorf("12 denies were made, %d are left: %v", len(got.DeniedTools), got.DeniedTools)
	}
}

func TestAgentImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	source := "# kept\n[agent]\nname = \"bot\"\n[capabilities]\nallowed_tools = [\"memory_search\", \"wiki_read\"]\nos_native = true\ncomputer_use = true\nrecording = true\n[x]\ntoken = \"hunter2\"\n"
	args := func(source string, replace bool) string {
		encoded, err := json.Marshal(map[string]any{"source": source, "replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	type imported struct {
		agentShown
		Created bool
		Notes   []struct{ Key, Text string }
	}
	got := ok[imported](b, "agent import", args(source, false))
	if diff := cmp.Diff([]string{"memory_search", "wiki_read"}, got.AllowedTools); diff != "" || !got.Created {
		t.Errorf("created %t, allowed (-want +got):\n%s", got.Created, diff)
	}
	notes := fmt.Sprint(got.Notes)
	for _, part := range []string{"no tool of this version, kept all the same: wiki_read", "secret in clear", "is no key that pawgate knows"} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes lack %q: %s", part, notes)
		}
	}
	type export struct{ Source string }
	if got := ok[export](b, "agent export", `{"agent_id":"bot"}`); got.Source != source {
		t.Errorf("B-43: exported %q, imported %q", got.Source, source)
	}
	b.fails("agent import", args(source, false), "conflict")
	if again := ok[imported](b, "agent import", args("[agent]\nname='bot'\n", true)); again.Created || again.AllowedTools[0] != "*" {
		t.Errorf("replaced: %+v", again)
	}
	b.fails("agent import", args("[agent]\nname='a'\nreports_to='z'\n", false), "missing_superior")
	b.fails("agent import", args("[agent\n", false), "source")

	trail, err := b.Run(t.Context(), "", "audit list", []byte(`{}`))
	if err != nil || strings.Contains(string(trail), "hunter2") {
		t.Errorf("AUTH-21: the trail holds the file's text: %s %v", trail, err)
	}
	ok[noted](b, "agent create", `{"agent_id":"made"}`)
	if made := ok[export](b, "agent export", `{"agent_id":"made"}`); !strings.HasPrefix(made.Source, "[agent]\nname = \"made\"\n") {
		t.Errorf("of an agent that was not imported: %s", made.Source)
	}
}

func TestAgentList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"a", "b", "c"} {
		ok[noted](b, "agent create", `{"agent_id":"`+id+`","allow":["memory_*"]}`)
	}
	ok[noted](b, "agent set", `{"agent_id":"b","state":"archived"}`)
	ok[map[string]any](b, "stop", `{"agent_id":"c"}`)
	ok[map[string]any](b, "key create", `{"agent_id":"a"}`)
	type line struct {
		AgentID string `json:"agent_id"`
		State   string
		Stopped bool
		Allowed []string `json:"allowed_tools"`
		Keys    int
	}
	type list struct {
		Agents []line
		Next   string `json:"next_after"`
	}
	memory := []string{"memory_*"}
	want := list{Agents: []line{{"a", "active", false, memory, 1}, {"c", "active", true, memory, 0}}}
	if diff := cmp.Diff(want, ok[list](b, "agent list", `{}`)); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	want = list{Agents: []line{{"a", "active", false, memory, 1}, {"b", "archived", false, memory, 0}}, Next: "b"}
	if diff := cmp.Diff(want, ok[list](b, "agent list", `{"all":true,"limit":2}`)); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	if got := ok[list](b, "agent list", `{"all":true,"after":"b"}`); len(got.Agents) != 1 || got.Agents[0].AgentID != "c" {
		t.Errorf("second page: %+v", got)
	}
}

func TestAgentExplain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["memory_*"],"deny":["memory_store","*"]}`)
	ok[noted](b, "agent create", `{"agent_id":"free","allow":["*"]}`)
	key := ok[struct {
		KeyID string `json:"key_id"`
	}](b, "key create", `{"agent_id":"free"}`).KeyID
	type explained struct {
		Allowed bool
		Reason  string
		Changes []string
	}
	for _, c := range []struct {
		name, args string
		want       explained
	}{
		{"allowed", `{"agent_id":"free","tool":"memory_search"}`, explained{true, "", []string{}}},
		{"denied", `{"agent_id":"bot","tool":"memory_store"}`, explained{false, "denied", []string{`pawgate agent deny bot --remove memory_store "*"`}}},
		{"denied_and_not_allowed", `{"agent_id":"bot","tool":"list_agents"}`, explained{false, "denied", []string{`pawgate agent deny bot --remove "*"`, "pawgate agent allow bot list_agents"}}},
		{"qualified", `{"agent_id":"free","tool":"mcp__pawgate__memory_search"}`, explained{true, "", []string{}}},
		{"unknown", `{"agent_id":"free","tool":"memory_serch"}`, explained{false, "unknown_tool", []string{}}},
		{"key_scope", `{"agent_id":"free","tool":"memory_store","key_id":"` + key + `"}`, explained{false, "scope", []string{`pawgate key create free --scope "*:read" --scope memory:write`}}},
		{"key_scope_enough", `{"agent_id":"free","tool":"memory_search","key_id":"` + key + `"}`, explained{true, "", []string{}}},
		{"tool_scope", `{"agent_id":"free","tool":"odoo_execute"}`, explained{false, "scope", []string{"pawgate key create free --scope odoo:execute --scope operator"}}},
	} {
		got := ok[explained](b, "agent explain", c.args)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	ok[map[string]any](b, "stop", `{}`)
	ok[map[string]any](b, "stop", `{"agent_id":"free"}`)
	ok[noted](b, "agent set", `{"agent_id":"free","state":"paused"}`)
	ok[map[string]any](b, "key revoke", `{"key_id":"`+key+`"}`)
	got := ok[explained](b, "agent explain", `{"agent_id":"free","tool":"memory_search"}`)
	if diff := cmp.Diff(explained{false, "agent_inactive", []string{"pawgate agent set free --state active", "pawgate resume", "pawgate resume free"}}, got); diff != "" {
		t.Errorf("stopped and paused (-want +got):\n%s", diff)
	}
	if got := ok[explained](b, "agent explain", `{"agent_id":"free","tool":"memory_search","key_id":"`+key+`"}`); got.Reason != "key_revoked" {
		t.Errorf("revoked key: %+v", got)
	}
	b.fails("agent explain", `{"agent_id":"bot","tool":"memory_search","key_id":"`+key+`"}`, "not_found")
	b.fails("agent explain", `{"agent_id":"nobody","tool":"memory_search"}`, "not_found")
}
