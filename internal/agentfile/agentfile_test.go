package agentfile_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pawgate/internal/agentfile"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
)

//go:embed testdata/clerk.toml
var clerk string

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := agentfile.Parse(clerk)
	if err != nil {
		t.Fatal(err)
	}
	want := agentfile.Agent{
		ID: "shop-clerk", DisplayName: "店員", Role: "worker", State: "active", Model: "claude-sonnet-4-6",
		ReportsTo: "manager", Icon: "🧾", Trigger: "@clerk",
		FallbackModel: new("claude-haiku-4-5"), BudgetCents: new(int64(2000)), HeartbeatEnabled: new(false),
		Allowed:          []string{"memory_search", "memory_store", "odoo_*"},
		Denied:           []string{"odoo_execute", "send_message", "computer_*", "browser_record_*", "desktop_record_*", "skill_from_recording"},
		ApprovalRequired: []string{"odoo_sale_confirm"},
		Scoped:           []string{"odoo_report"},
		Rules:            []policy.Rule{{Tool: "send_message", Effect: policy.Forbid}},
		Source:           clerk, // B-43: what comes out is what went in
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(agentfile.Agent{}, "Notes")); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	notes := map[string]string{}
	for _, n := range got.Notes {
		notes[n.Key] += n.Text + "\n"
		if strings.Contains(n.Text, "AAE-not-a-real-token") {
			t.Errorf("note %s shows a secret", n.Key)
		}
	}
	for key, part := range map[string]string{
		"agent.name":                          "shop-clerk",
		"agent.shift":                         "no key that pawgate knows",
		"capabilities.aproval_required_tools": "check the spelling",
		"capabilities.allowed_tools":          "mcp__duduclaw__memory_store → memory_store",
		"capabilities.denied_tools":           "mcp__other__send_message → send_message",
		"capabilities.irreversible_tools":     "added to approval_required_tools",
		"capabilities.policy":                 "here the lists decide on it",
		"capabilities.computer_use":           "computer_*",
		"capabilities.recording":              "skill_from_recording",
		"channels.telegram.bot_token":         "secret in clear",
		"capabilities.wiki_visible_to, channels.telegram, model.local": "not used here",
	} {
		if !strings.Contains(notes[key], part) {
			t.Errorf("note on %s: %q lacks %q", key, notes[key], part)
		}
		delete(notes, key)
	}
	for key, text := range notes {
		t.Errorf("unexpected note on %s: %s", key, text)
	}
}

func TestParse_lines(t *testing.T) {
	t.Parallel()
	got, err := agentfile.Parse(clerk)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range got.Notes {
		if n.Key == "agent.shift" && n.Line != 10 {
			t.Errorf("agent.shift is on line %d, want 10", n.Line)
		}
	}
}

// What the two sides mean by an empty list differs, see the package doc.
func TestParse_lists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, capabilities string
		allowed, asks      []string
		noted              string // part of some note
	}{
		{"AUTH-06_absent_list_meant_all", ``, []string{"*"}, []string{}, "every tool in DuDuClaw"},
		{"AUTH-06_empty_list_meant_all", `allowed_tools = []`, []string{"*"}, []string{}, "every tool in DuDuClaw"},
		{"AUTH-06_nothing_left_is_not_all", `allowed_tools = ["Bash", "Read"]`, []string{}, []string{}, "may call no tool"},
		{"AUTH-06_blank_entry_is_not_all", `allowed_tools = [""]`, []string{}, []string{}, "may call no tool"},
		{"star", `allowed_tools = ["*"]`, []string{"*"}, []string{}, ""},
		{"whole_server", `allowed_tools = ["mcp__duduclaw__*"]`, []string{"*"}, []string{}, "mcp__duduclaw__* → *"},
		{"whole_server_short", `allowed_tools = ["mcp__duduclaw"]`, []string{"*"}, []string{}, "mcp__duduclaw → *"},
		{"W-23_one_qualifier", `allowed_tools = ["mcp__duduclaw__memory_read"]`, []string{"memory_read"}, []string{}, "→ memory_read"},
		{"W-23_qualifier_in_approvals", `approval_required_tools = ["mcp__duduclaw__memory_read"]`, []string{"*"}, []string{"memory_read"}, "→ memory_read"},
		{"nested_qualifier", `allowed_tools = ["mcp__a__mcp__duduclaw__memory_read"]`, []string{}, []string{}, "names no tool"},
		{"other_servers_tool_of_the_same_name", `allowed_tools = ["mcp__github__send_message"]`, []string{}, []string{}, "names no tool"},
		{"argument_would_be_lost", `allowed_tools = ["send_message(#ops)"]`, []string{}, []string{}, "names no tool"},
		{"argument_narrows", `approval_required_tools = ["send_message(#ops)"]`, []string{"*"}, []string{"send_message"}, "→ send_message"},
		{"upper_case", `allowed_tools = ["Memory_Search"]`, []string{}, []string{}, "names no tool"},
		{"look_alike", `allowed_tools = ["mеmory_search"]`, []string{}, []string{}, "names no tool"},
		{"star_in_the_middle", `allowed_tools = ["mem*", "*_search", "memory_*_x"]`, []string{}, []string{}, "names no tool"},
		{"approvals_of_three_kinds", `approval_required_tools = ["a_b"]
irreversible_tools = ["c_d", "a_b"]
maybe_irreversible_tools = ["e_f"]`, []string{"*"}, []string{"a_b", "c_d", "e_f"}, "a model judged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := agentfile.Parse("[agent]\nname = 'a'\n[capabilities]\n" + c.capabilities + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.allowed, got.Allowed); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.asks, got.ApprovalRequired); diff != "" {
				t.Errorf("approval required (-want +got):\n%s", diff)
			}
			if !hasNote(got.Notes, c.noted) {
				t.Errorf("no note has %q: %+v", c.noted, got.Notes)
			}
		})
	}
}

func hasNote(notes []agentfile.Note, part string) bool {
	for _, n := range notes {
		if strings.Contains(n.Text, part) {
			return true
		}
	}
	return part == ""
}

func TestParse_identity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent   string
		state, boss   string
		role, display string
	}{
		{"defaults", `name = "a"`, "active", "", "specialist", "a"},
		{"nobody_above", `name = "a"` + "\n" + `reports_to = "none"`, "active", "", "specialist", "a"},
		{"itself_above", `name = "a"` + "\n" + `reports_to = "A"`, "active", "", "specialist", "a"},
		{"boss", `name = "a"` + "\n" + `reports_to = "Main"`, "active", "main", "specialist", "a"},
		{"paused", `name = "a"` + "\n" + `status = "paused"`, "paused", "", "specialist", "a"},
		{"terminated", `name = "a"` + "\n" + `status = "terminated"`, "archived", "", "specialist", "a"},
		{"unknown_state_is_paused", `name = "a"` + "\n" + `status = "zombie"`, "paused", "", "specialist", "a"},
		// Defect 8 there: a role nobody knew made the agent unreadable.
		{"any_role", `name = "a"` + "\n" + `role = "wizard"`, "active", "", "wizard", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := agentfile.Parse("[agent]\n" + c.agent + "\n")
			if err != nil {
				t.Fatal(err)
			}
			want := []string{c.state, c.boss, c.role, c.display}
			if diff := cmp.Diff(want, []string{got.State, got.ReportsTo, got.Role, got.DisplayName}); diff != "" {
				t.Errorf("state, superior, role, name (-want +got):\n%s", diff)
			}
		})
	}
}

// W-8: the predecessor lost policy, approvals and grants over any error.
func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"W-8_broken_syntax", "[agent]\nname = 'a'\n[capabilities\n", "line 3: "},
		{"W-8_list_of_a_wrong_type", "[agent]\nname = 'a'\n[capabilities]\ndenied_tools = 'x'\n", "line 4: capabilities.denied_tools has the wrong type"},
		{"W-8_element_of_a_wrong_type", "[agent]\nname = 'a'\n[capabilities]\nallowed_tools = ['x', 5]\n", "line 4: capabilities.allowed_tools has the wrong type"},
		{"flag_of_a_wrong_type", "[agent]\nname = 'a'\n[capabilities]\nos_native = 'no'\n", "capabilities.os_native has the wrong type"},
		{"same_key_twice", "[agent]\nname = 'a'\nname = 'b'\n", "line 3: "},
		{"no_name", "[agent]\nrole = 'main'\n", "[agent] has no name"},
		{"empty", "", "[agent] has no name"},
		{"bad_name", "[agent]\nname = '../etc'\n", "must start with a letter or digit"},
		{"long_name", "[agent]\nname = '" + strings.Repeat("a", 65) + "'\n", "at most 64"},
		{"bad_superior", "[agent]\nname = 'a'\nreports_to = 'b c'\n", "reports_to"},
		{"two_lines", "[agent]\nname = 'a'\ndisplay_name = \"a\\nb\"\n", "agent.display_name must be one line"},
		{"escaped_nul", "[agent]\nname = 'a'\nicon = \"\\u0000\"\n", "agent.icon must be one line"},
		{"nul", "[agent]\nname = 'a'\n#\x00", "NUL"},
		{"not_utf8", "[agent]\nname = 'a'\n# \xff", "UTF-8"},
		{"too_long", "#" + strings.Repeat("x", agentfile.MaxSize), "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := agentfile.Parse(c.text)
			invalid, ok := fault.InvalidOf(err)
			if !ok || invalid.Parameter != "source" {
				t.Fatalf("want the parameter source refused, got %v", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was imported") {
				t.Errorf("error %q lacks %q", err, c.want)
			}
		})
	}
}

func TestParse_windows_file(t *testing.T) {
	t.Parallel()
	text := "\ufeff[agent]\r\nname = 'a'\r\n"
	got, err := agentfile.Parse(text)
	if err != nil || got.ID != "a" || got.Source != text {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(clerk)
	f.Add("[agent]\nname='a'\n[capabilities]\nallowed_tools=['mcp__duduclaw__', '(', 'mcp____x', '\\u0000']\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := agentfile.Parse(text)
		if err != nil {
			if _, ok := fault.InvalidOf(err); !ok {
				t.Fatalf("not worded for the caller: %v", err)
			}
			return
		}
		if !agentfile.IsID(a.ID) || a.Source != text {
			t.Fatalf("id %q", a.ID)
		}
		for _, list := range [][]string{a.Allowed, a.Denied, a.ApprovalRequired, a.Scoped} {
			for _, p := range list {
				if !agentfile.IsPattern(p) {
					t.Fatalf("%q is no pattern", p)
				}
			}
		}
	})
}

// The predecessor wrote and showed its permissions, and most of them held
// nobody back.
func TestParse_permissions(t *testing.T) {
	t.Parallel()
	const open = "[capabilities]\ncomputer_use = true\nos_native = true\nrecording = true\ndenied_tools = ['x_y']\n"
	for _, c := range []struct {
		permissions string
		denied      []string
	}{
		{"", []string{"x_y"}},
		{"can_create_agents = true\ncan_schedule_tasks = true", []string{"x_y"}},
		{"can_create_agents = false", []string{"x_y", "create_agent"}},
		{"can_send_cross_agent = false", []string{"x_y", "send_to_agent", "spawn_agent", "spawn_ephemeral"}},
		{"can_schedule_tasks = false\ncan_modify_own_soul = false", []string{"x_y", "schedule_task", "agent_update_soul"}},
	} {
		got, err := agentfile.Parse("[agent]\nname = 'a'\n[permissions]\n" + c.permissions + "\n" + open)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.denied, got.Denied); diff != "" {
			t.Errorf("%q: denied (-want +got):\n%s", c.permissions, diff)
		}
		if (len(got.Denied) > 1) != hasNote(got.Notes, "is false, so denied_tools got") {
			t.Errorf("%q: notes %+v", c.permissions, got.Notes)
		}
	}
}

// What could not be set here is left out, told, and kept in the text.
func TestParse_settings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings, noted string
		set             bool
	}{
		{"[model]\napi_mode = 'cli'\n", "", true},
		{"[model]\napi_mode = 'telepathy'\n", "is none of cli, direct, auto", false},
		{"[budget]\nmonthly_limit_cents = 0\n", "", true},
		{"[budget]\nmonthly_limit_cents = -1\n", "is less than nothing", false},
		{"[container]\nmax_concurrent = 3\n", "", true},
		{"[container]\nmax_concurrent = 4294967297\n", "is not between 1 and 100", false},
		{"[heartbeat]\ncron = '0 9 * * 2-6'\n", "it is 0 9 * * 1-5 here", true},
		{"[heartbeat]\ncron = \"a\\nb\"\n", "is not one line", false},
		{"[model]\nfallback = \"a\\u200bb\"\n", "is not one line", false},
	} {
		text := "[agent]\nname = 'a'\n" + c.settings
		got, err := agentfile.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		set := got.APIMode != nil || got.BudgetCents != nil || got.MaxConcurrent != nil || got.HeartbeatCron != nil || got.FallbackModel != nil
		if set != c.set || !hasNote(got.Notes, c.noted) || got.Source != text {
			t.Errorf("%q: set %v, notes %+v", c.settings, set, got.Notes)
		}
	}
}
