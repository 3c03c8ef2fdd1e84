package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exec changes the database behind the commands' back.
func (b bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.DB.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b bench) text(sql string, args ...any) string {
	b.t.Helper()
	var s string
	if err := b.DB.QueryRow(b.t.Context(), sql, args...).Scan(&s); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type rulesShown struct {
	Rules   []string
	Policy  json.RawMessage
	Changed bool
}

const twoRules = `
[[policy]]
tool = "odoo_execute"
effect = "forbid"
when = [{ arg = "query", op = "contains", value = "drop" }]
[[policy]]
tool = "memory_*"
effect = "ask"
`

func TestAgentRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	if got := ok[rulesShown](b, "agent rules", `{"agent_id":"bot"}`); len(got.Rules) != 0 || string(got.Policy) != "[]" || got.Changed {
		t.Errorf("a new agent: %+v", got)
	}
	want := []string{`1: forbid odoo_execute when query contains "drop"`, "2: ask memory_*"}
	set := ok[rulesShown](b, "agent rules", encode(t, map[string]any{"agent_id": "bot", "source": twoRules}))
	if diff := cmp.Diff(want, set.Rules); diff != "" || !set.Changed {
		t.Errorf("set, changed %t (-want +got):\n%s", set.Changed, diff)
	}
	again := ok[rulesShown](b, "agent rules", encode(t, map[string]any{"agent_id": "bot", "source": string(set.Policy)}))
	if diff := cmp.Diff(want, again.Rules); diff != "" || again.Changed {
		t.Errorf("what is shown can be set again, changed %t (-want +got):\n%s", again.Changed, diff)
	}
	if got := ok[rulesShown](b, "agent rules", `{"agent_id":"bot","remove":[1]}`); len(got.Rules) != 1 || got.Rules[0] != "1: ask memory_*" || !got.Changed {
		t.Errorf("one removed: %+v", got)
	}
	if got := b.text(`select rules::text from agents where id = 'bot'`); got != `[{"tool": "memory_*", "effect": "ask"}]` {
		t.Errorf("the gate reads %s", got)
	}
	ok[rulesShown](b, "agent rules", `{"agent_id":"bot","clear":true}`)
	if got := b.text(`select rules::text from agents where id = 'bot'`); got != `[]` {
		t.Errorf("cleared: %s", got)
	}
	if n := b.text(`select count(*) from audit where method = 'agent.rules' and agent_id = 'bot'`); n != "5" {
		t.Errorf("AUTH-24: %s of 5 commands are on record", n)
	}
}

// C37: what could only be ignored when it runs is refused when it is written.
func TestAgentRules_C37_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for source, want := range map[string]string{
		`[{"tool":"memory_serch","effect":"forbid"}]`:                                                     "rule 1: there is no tool memory_serch",
		`[{"tool":"memory_*","effect":"forbid"},{"tool":"memory_search","effect":"stop"}]`:                "rule 2: effect must be",
		`[{"tool":"memory_search","effect":"ask","when":[{"arg":"limit","op":"gt","value":1}]}]`:          "there is no argument limit",
		`[{"tool":"memory_search","effect":"ask","when":[{"arg":"query","op":"gt","value":1}]}]`:          "can only compare it as a time",
		`[{"tool":"memory_search","effect":"allow","when":[{"arg":"query","op":"matches","value":"a"}]}]`: "begin with ^",
		"[[policy]]\ntool = 'memory_search'\neffect = 'ask'\nwehn = []\n":                                 "is no member of a rule",
		"nothing": "line 1",
	} {
		if got := b.fails("agent rules", encode(t, map[string]any{"agent_id": "bot", "source": source}), "source"); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", source, got, want)
		}
	}
	b.fails("agent rules", `{"agent_id":"bot","remove":[1]}`, "remove")
	b.fails("agent rules", `{"agent_id":"bot","clear":true,"remove":[1]}`, "source")
	b.fails("agent rules", `{"agent_id":"nobody"}`, "not_found")
}

func TestAgentImport_rules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := func(policy string) string {
		return encode(t, map[string]any{"replace": true, "source": "[agent]\nname = 'bot'\n[[capabilities.policy]]\n" + policy})
	}
	type imported struct {
		Rules        []string
		AllowedTools []string `json:"allowed_tools"`
		Notes        []struct{ Key, Text string }
	}
	got := ok[imported](b, "agent import", file("tool = 'mcp__duduclaw__memory_store'\neffect = 'forbid'\nwhen = [{arg='query', op='starts_with', value='x'}]\n"))
	if diff := cmp.Diff([]string{`1: forbid memory_store when query starts_with "x"`}, got.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	stored := `[{"tool": "memory_store", "when": [{"op": "starts_with", "arg": "query", "value": "x"}], "effect": "forbid"}]`
	if rules := b.text(`select rules::text from agents where id = 'bot'`); rules != stored {
		t.Errorf("the gate reads %s", rules)
	}
	ok[noted](b, "agent set", `{"agent_id":"bot","approver":"client","approval_minutes":30}`)
	for policy, want := range map[string]string{
		"tool = 'send_fax'\neffect = 'forbid'\n":                                                   "rule 1: there is no tool send_fax; change the rule, or remove it and deny its tool; nothing was imported",
		"tool = 'memory_store'\neffect = 'forbid'\nwhen = [{arg='to', op='equals', value='x'}]\n":  "there is no argument to",
		"tool = 'memory_store'\neffect = 'forbid'\nwhen = [{arg='query', op='like', value='x'}]\n": "op must be one of",
	} {
		if got := b.fails("agent import", file(policy), "source"); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if rules := b.text(`select rules::text from agents where id = 'bot'`); rules != stored {
		t.Errorf("a refused file changed the rules: %s", rules)
	}
	ok[imported](b, "agent import", file("tool = 'memory_*'\neffect = 'allow'\n"))
	if got := b.text(`select approver || ' ' || approval_life || ' ' || allowed_tools::text from agents where id = 'bot'`); got != "client 00:30:00 {memory_*}" {
		t.Errorf("after a replacement: %s", got)
	}
}

func TestAgentSet_approver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type shown struct {
		Approver        string
		ApprovalMinutes int `json:"approval_minutes"`
		GrantMinutes    int `json:"grant_minutes"`
		Changed         bool
	}
	if got := ok[shown](b, "agent create", `{"agent_id":"bot"}`); got.Approver != "operator" || got.ApprovalMinutes != 15 || got.GrantMinutes != 60 {
		t.Errorf("a new agent: %+v", got)
	}
	if diff := cmp.Diff(shown{"client", 45, 5, true}, ok[shown](b, "agent set", `{"agent_id":"bot","approver":"client","approval_minutes":45,"grant_minutes":5}`)); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shown{"none", 45, 5, true}, ok[shown](b, "agent set", `{"agent_id":"bot","approver":"none"}`)); diff != "" {
		t.Errorf("the rest stays (-want +got):\n%s", diff)
	}
	b.fails("agent set", `{"agent_id":"bot","approver":"anybody"}`, "approver")
	b.fails("agent set", `{"agent_id":"bot","approval_minutes":10081}`, "approval_minutes")
	for _, command := range []string{"agent ask", "agent scoped"} {
		ok[noted](b, command, `{"agent_id":"bot","patterns":["memory_store","odoo_*"]}`)
		ok[noted](b, command, `{"agent_id":"bot","patterns":["odoo_*"],"remove":true}`)
		b.fails(command, `{"agent_id":"bot","patterns":["memory_stroe"]}`, "patterns")
	}
	if got := b.text(`select approval_required_tools::text || scoped_tools::text || allowed_tools::text from agents where id = 'bot'`); got != "{memory_store}{memory_store}{}" {
		t.Errorf("lists: %s", got)
	}
}

func TestAgentLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	type line struct {
		Class     string
		Burst     float64
		PerMinute float64 `json:"per_minute"`
		Own       bool
	}
	type shown struct {
		Limits  []line
		Changed bool
	}
	usual := ok[shown](b, "agent limits", `{"agent_id":"bot"}`)
	if len(usual.Limits) != 6 || usual.Limits[3] != (line{"send", 20, 60, false}) || usual.Changed {
		t.Errorf("the usual ones: %+v", usual)
	}
	got := ok[shown](b, "agent limits", `{"agent_id":"bot","class":"send","burst":2}`)
	if got.Limits[3] != (line{"send", 2, 60, true}) || !got.Changed {
		t.Errorf("set: %+v", got)
	}
	if limits := b.text(`select limits::text from agents where id = 'bot'`); limits != `{"send": {"burst": 2, "per_minute": 60}}` {
		t.Errorf("the gate reads %s", limits)
	}
	ok[shown](b, "agent limits", `{"agent_id":"bot","class":"credential","per_minute":10,"burst":10}`)
	if got := ok[shown](b, "agent limits", `{"agent_id":"bot","class":"send","clear":true}`); got.Limits[3] != usual.Limits[3] || !got.Limits[0].Own {
		t.Errorf("one cleared: %+v", got)
	}
	if got := ok[shown](b, "agent limits", `{"agent_id":"bot","clear":true}`); got.Limits[0].Own || !got.Changed {
		t.Errorf("all cleared: %+v", got)
	}
	for args, parameter := range map[string]string{
		`{"agent_id":"bot","class":"fax","burst":1}`:                      "class",
		`{"agent_id":"bot","burst":1}`:                                    "class",
		`{"agent_id":"bot","class":"send"}`:                               "burst",
		`{"agent_id":"bot","class":"send","burst":1,"clear":true}`:        "clear",
		`{"agent_id":"bot","class":"send","per_minute":0}`:                "per_minute", // 0 would be no limit
		`{"agent_id":"bot","class":"send","burst":100000,"per_minute":1}`: "burst",
	} {
		b.fails("agent limits", args, parameter)
	}
}

// TestAgentSet_approval_card: where requests for approval are told.
func TestAgentSet_approval_card(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type shown struct {
		ApprovalCard string `json:"approval_card"`
		Changed      bool
	}
	ok[shown](b, "agent create", `{"agent_id":"bot"}`)
	if got := ok[shown](b, "agent set", `{"agent_id":"bot","approval_card":"telegram:-1001234"}`); got != (shown{"telegram:-1001234", true}) {
		t.Errorf("set: %+v", got)
	}
	for _, wrong := range []string{"telegram", "telegram:", "fax:1", ":1", "telegram:a b", "Telegram:1", "/telegram:1", "Ops/telegram:1", "a/b/telegram:1"} {
		b.fails("agent set", encode(t, map[string]any{"agent_id": "bot", "approval_card": wrong}), "approval_card")
	}
	b.fails("agent set", `{"agent_id":"bot","approval_card":"ops/slack:C1"}`, "not_found")
	ok[shown](b, "agent create", `{"agent_id":"ops"}`)
	// What is missing before a card can be sent is said at once, and not when nobody was asked.
	notes := func() string {
		return strings.Join(ok[struct{ Notes []string }](b, "agent set", `{"agent_id":"bot","approval_card":"ops/slack:C0123456789"}`).Notes, "\n")
	}
	if got := notes(); !strings.Contains(got, "pawgate channel set ops slack --secret env://NAME") {
		t.Errorf("without a channel: %q", got)
	}
	ok[map[string]any](b, "channel set", `{"agent_id":"ops","channel":"slack","secret":"env://T"}`)
	if got := notes(); !strings.Contains(got, "pawgate channel allow ops slack C0123456789") {
		t.Errorf("without the chat: %q", got)
	}
	ok[map[string]any](b, "channel allow", `{"agent_id":"ops","channel":"slack","chat":"C0123456789","name":"approvals"}`)
	if got := notes(); got != "" {
		t.Errorf("with both: %q", got)
	}
	ok[shown](b, "agent set", `{"agent_id":"bot","approval_card":"telegram:-1001234"}`)
	if got := ok[shown](b, "agent set", `{"agent_id":"bot","icon":"x"}`); got.ApprovalCard != "telegram:-1001234" {
		t.Errorf("the rest stays: %+v", got)
	}
	if got := ok[shown](b, "agent set", `{"agent_id":"bot","approval_card":""}`); got != (shown{"", true}) {
		t.Errorf("cleared: %+v", got)
	}
}
