package agentfile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pawgate/internal/agentfile"
	"pawgate/internal/policy"
)

// forms are ways in which the same file can be written.
var forms = map[string]string{
	"tables":      clerk,
	"crlf":        strings.ReplaceAll(clerk, "\n", "\r\n"),
	"bom":         "\ufeff" + clerk,
	"no last end": strings.TrimRight(clerk, "\n"),
	"dotted":      "# dotted\nagent.name = 'a'\nagent.icon = '🧾' # kept\n",
	"quoted keys": "[\"agent\"]\n\"name\" = \"a\"\n'role'   =   'worker'   # kept\n",
	"long values": "[agent]\nname = \"a\"\ndisplay_name = \"\"\"\nA\"\"\"\n[capabilities]\nallowed_tools = [\n  \"memory_*\", # why\n  \"odoo_*\",\n]\n# the end\n",
	"array first": "[[capabilities.policy]]\ntool = 'x'\neffect = 'ask'\n[[capabilities.policy.when]]\narg = 'a'\nop = 'eq'\nvalue = 1\n\n# between\n[agent]\nname = 'a'",
	"sub first":   "[model.local]\nbackend = 'x'\n[agent]\nname = 'a'\n[model]\npreferred = 'm'\n",
	"evolution":   "[agent]\nname = 'a'\n[evolution]\nmax_silence_hours = 168.0 # long\ngvu_enabled = false\n[evolution.external_factors]\nuser_feedback = true\n[heartbeat]\ncron = \"0 9 * * 2-6\"\n[permissions]\ncan_create_agents = false\n",
	"new":         "",
}

func parse(t *testing.T, text string) agentfile.Agent {
	t.Helper()
	a, err := agentfile.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return a
}

// What was imported and not changed comes out byte for byte.
func TestExport_unchanged(t *testing.T) {
	t.Parallel()
	for name, text := range forms {
		if text == "" {
			continue
		}
		if got, lost := agentfile.Export(parse(t, text)); got != text || len(lost) > 0 {
			t.Errorf("%s: lost %q (-want +got):\n%s", name, lost, cmp.Diff(text, got))
		}
	}
}

// A change touches its own value: the lines around it, and the comment behind
// it, stay.
func TestExport_changed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*agentfile.Agent)
		want   [][2]string // what stands instead of what
	}{
		{"text", func(a *agentfile.Agent) { a.Role = "qa" }, [][2]string{{`role = "worker"          # trailing`, `role = "qa"          # trailing`}}},
		{"escapes", func(a *agentfile.Agent) { a.DisplayName = `a "b" \ <漢>` }, [][2]string{{`"店員"`, `"a \"b\" \\ <漢>"`}}},
		{"archived", func(a *agentfile.Agent) { a.State = "archived" }, [][2]string{{`status = "active"`, `status = "archived"`}}},
		{"nobody above", func(a *agentfile.Agent) { a.ReportsTo = "" }, [][2]string{{`reports_to = "manager"`, `reports_to = ""`}}},
		{"number", func(a *agentfile.Agent) { a.BudgetCents = new(int64(5)) }, [][2]string{{`= 2000`, `= 5`}}},
		{"new key in a table", func(a *agentfile.Agent) { a.APIMode = new("cli") }, [][2]string{{"\"claude-haiku-4-5\"\n", "\"claude-haiku-4-5\"\napi_mode = \"cli\"\n"}}},
		{"new table", func(a *agentfile.Agent) { a.MaxConcurrent = new(3) }, [][2]string{{"effect = \"forbid\"\n", "effect = \"forbid\"\n\n[container]\nmax_concurrent = 3\n"}}},
		{"list", func(a *agentfile.Agent) { a.Scoped = nil }, [][2]string{{`scoped_tools = ["odoo_report"]`, `scoped_tools = []`}}},
		{"rules", func(a *agentfile.Agent) {
			a.Rules = []policy.Rule{{Tool: "a_b", Effect: policy.Ask, When: []policy.Condition{{Arg: "n", Op: "gt", Value: int64(5)}}}}
		}, [][2]string{
			{"wiki_visible_to = [\"*\"]\n", "wiki_visible_to = [\"*\"]\npolicy = [{ \"effect\" = \"ask\", \"tool\" = \"a_b\", \"when\" = [{ \"arg\" = \"n\", \"op\" = \"gt\", \"value\" = 5 }] }]\n"},
			{"[[capabilities.policy]]\ntool = \"send_message\"\neffect = \"forbid\"\n", ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := parse(t, clerk)
			c.change(&a)
			want := clerk
			for _, w := range c.want {
				if strings.Count(want, w[0]) != 1 {
					t.Fatalf("%q is not in the file once", w[0])
				}
				want = strings.Replace(want, w[0], w[1], 1)
			}
			got, lost := agentfile.Export(a)
			if diff := cmp.Diff(want, got); diff != "" || len(lost) > 0 {
				t.Errorf("lost %q (-want +got):\n%s", lost, diff)
			}
		})
	}
}

// Whatever changed, of whatever file: the text says what the agent is, or tells
// which keys it cannot say; and it is the same again after another round.
func TestExport_says_what_the_agent_is(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	some := func(list ...string) string { return list[r.IntN(len(list))] }
	maybe := func(change func()) {
		if r.IntN(3) == 0 {
			change()
		}
	}
	names := []string{"", "x", "café 店", `q"q\`, "'", "#", "a = b", "[t]"}
	for n := range 3000 {
		form := slices.Sorted(func(yield func(string) bool) {
			for name := range forms {
				if !yield(name) {
					return
				}
			}
		})[n%len(forms)]
		a := agentfile.Agent{ID: "a", DisplayName: "a", Role: "worker", State: "active"}
		if forms[form] != "" {
			a = parse(t, forms[form])
		}
		maybe(func() { a.DisplayName = "N" + some(names...) })
		maybe(func() { a.Role = "r" + some(names...) })
		maybe(func() { a.State = some("active", "paused", "archived") })
		maybe(func() { a.ReportsTo = some("", "boss") })
		maybe(func() { a.Icon, a.Trigger, a.Model = some(names...), some(names...), some(names...) })
		maybe(func() { a.FallbackModel, a.APIMode = new(some(names...)), new(some("cli", "direct", "auto")) })
		maybe(func() { a.BudgetCents, a.MaxConcurrent = new(int64(r.IntN(9))), new(1+r.IntN(9)) })
		maybe(func() {
			a.HeartbeatEnabled, a.HeartbeatCron = new(r.IntN(2) == 0), new(some("0 9 * * 1-5", "*/5 * * * *", "0 9 * * 0", "", "0 0 9 * * MON#2"))
		})
		maybe(func() {
			a.Evolution = map[string]string{"gvu_enabled": some("true", "false"), "max_silence_hours": some("12", "0.5"), "stagnation_action": "suppress"}
		})
		maybe(func() { a.Allowed = [][]string{{}, {"*"}, {"memory_*", "x_y"}}[r.IntN(3)] })
		maybe(func() { a.Denied = append(slices.Clone(a.Denied), "z_"+fmt.Sprint(r.IntN(9))) })
		if form != "evolution" { // whose permissions deny a tool, which the lists cannot take back
			maybe(func() { a.Denied = [][]string{{}, {"os_*"}, {"computer_*", "browser_record_*"}}[r.IntN(3)] })
		}
		maybe(func() { a.Rules = nil })
		text, lost := agentfile.Export(a)
		got := parse(t, text)
		got.HeartbeatCron, a.HeartbeatCron = nil, nil // its weekdays are written by name
		got.Denied, a.Denied = felt(got), felt(a)
		ignore := cmpopts.IgnoreFields(agentfile.Agent{}, "Notes", "Source", "Evolution")
		if diff := cmp.Diff(a, got, ignore, cmpopts.EquateEmpty()); (diff != "") != (len(lost) > 0) {
			t.Fatalf("seed %d, %s: lost %q (-want +got):\n%s\n%s", seed, form, lost, diff, text)
		}
		if len(lost) > 0 {
			t.Fatalf("seed %d, %s: lost %q in\n%s", seed, form, lost, text)
		}
		if again, _ := agentfile.Export(parse(t, text)); again != text {
			t.Fatalf("seed %d, %s: the second round differs:\n%s", seed, form, cmp.Diff(text, again))
		}
	}
}

// felt is what an agent notices of its denied tools: those that a flag would
// open count only where something allows them.
func felt(a agentfile.Agent) []string {
	return slices.DeleteFunc(slices.Clone(a.Denied), func(d string) bool {
		return !slices.Contains(a.Allowed, "*") && slices.Contains([]string{"computer_*", "os_*", "browser_record_*", "desktop_record_*", "skill_from_recording"}, d)
	})
}

// A new file opens nothing that the agent may not do.
func TestExport_grants_nothing(t *testing.T) {
	t.Parallel()
	const head = "[agent]\nname = \"bot\"\n\n[capabilities]\n"
	for _, c := range []struct {
		name            string
		allowed, denied []string
		want            string
	}{
		{"nothing", nil, nil, `allowed_tools = ["-"]`},
		{"a few", []string{"memory_*"}, []string{"memory_store"}, "allowed_tools = [\"memory_*\"]\ndenied_tools = [\"memory_store\"]"},
		{"some of a family", []string{"computer_click"}, nil, "computer_use = true\nallowed_tools = [\"computer_click\"]"},
		{"all", []string{"*"}, nil, "computer_use = true\nos_native = true\nrecording = true"},
		{"all but", []string{"*"}, []string{"computer_*", "desktop_*"}, "os_native = true\nrecording = true\ndenied_tools = [\"computer_*\", \"desktop_*\"]"},
	} {
		a := agentfile.Agent{ID: "bot", DisplayName: "bot", Role: "worker", State: "active", Allowed: c.allowed, Denied: c.denied}
		plain := parse(t, head)
		a.Role, a.DisplayName = plain.Role, plain.DisplayName
		got, lost := agentfile.Export(a)
		if diff := cmp.Diff(head+c.want+"\n", got); diff != "" || len(lost) > 0 {
			t.Errorf("%s: lost %q (-want +got):\n%s", c.name, lost, diff)
		}
	}
}

// A file that cannot be edited stays as it is, and that is told.
func TestExport_inline_table(t *testing.T) {
	t.Parallel()
	text := "agent = { name = 'a', role = 'worker' }\n"
	a := parse(t, text)
	a.Role = "qa"
	got, lost := agentfile.Export(a)
	if got != text || !slices.Equal(lost, []string{"agent.role"}) {
		t.Errorf("lost %q:\n%s", lost, got)
	}
}
