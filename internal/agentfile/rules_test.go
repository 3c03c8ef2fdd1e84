package agentfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/agentfile"
	"pawgate/internal/fault"
)

func TestParse_policy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, policy string
		allowed      []string
		rules        []string
		noted        string
	}{
		{"none", ``, []string{"*"}, []string{}, ""},
		{"forbid_only", `{tool="memory_store", effect="forbid", when=[{arg="layer", op="equals", value="core"}]}`,
			[]string{"*"}, []string{`forbid memory_store when layer equals "core"`}, "here the lists decide on it"},
		{"allow_everything_else", `{tool="*", effect="allow"}, {tool="odoo_*", effect="ask"}`, []string{"*"}, []string{"allow *", "ask odoo_*"}, ""},
		// There, whatever no allow or ask rule matched was refused.
		{"W-6_allow_rules_are_all_there_is", `{tool="memory_*", effect="allow"}, {tool="send_message", effect="ask"}, {tool="odoo_execute", effect="forbid"}`,
			[]string{"memory_*", "send_message"}, []string{"allow memory_*", "ask send_message", "forbid odoo_execute"}, "allowed_tools became the tools of these rules: memory_*, send_message"},
		{"ask_with_conditions_but_no_allow", `{tool="memory_*", effect="allow"}, {tool="send_message", effect="ask", when=[{arg="channel", op="equals", value="line"}]}`,
			[]string{"memory_*", "send_message"}, []string{"allow memory_*", "ask send_message"}, "rule 2 asks for every call of send_message"},
		{"ask_with_conditions_beside_an_allow", `{tool="*", effect="allow"}, {tool="send_message", effect="ask", when=[{arg="channel", op="equals", value="line"}]}`,
			[]string{"*"}, []string{"allow *", `ask send_message when channel equals "line"`}, ""},
		{"W-23_qualified", `{tool="mcp__duduclaw__memory_store", effect="forbid"}`, []string{"*"}, []string{"forbid memory_store"}, ""},
		{"families", `{tool="shell_exec", effect="forbid"}, {tool="Bash", effect="forbid"}, {tool="mcp_call", effect="ask"}`,
			[]string{"*"}, []string{"ask *"}, "names no tool of pawgate, kept in the stored text only: shell_exec, Bash"},
		{"only_families_allowed", `{tool="fs_write", effect="allow"}`, []string{}, []string{}, "allowed_tools became"},
		{"own_operators", `{tool="odoo_search", effect="forbid", when=[{arg="limit", op="gt", value=1e2}, {arg="since", op="lt", value=2025-01-01T00:00:00Z}]}`,
			[]string{"*"}, []string{`forbid odoo_search when limit gt 100 and since lt "2025-01-01T00:00:00Z"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := "[agent]\nname = 'a'\n[capabilities]\npolicy = [" + c.policy + "]\n"
			got, err := agentfile.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			rules := []string{}
			for _, r := range got.Rules {
				rules = append(rules, r.String())
			}
			if diff := cmp.Diff(c.rules, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.allowed, got.Allowed); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			if !hasNote(got.Notes, c.noted) {
				t.Errorf("no note has %q: %+v", c.noted, got.Notes)
			}
		})
	}
}

// A rule without its misspelt part would be another rule.
func TestParse_policy_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, want string }{
		"misspelt_when":      {"tool = 'a_b'\neffect = 'forbid'\nwhne = []\n", "line 6: capabilities.policy.whne is no member of a rule"},
		"misspelt_condition": {"tool = 'a_b'\neffect = 'forbid'\nwhen = [{arg='x', operator='equals', value=1}]\n", "operator is no member of a rule"},
		"wrong_type":         {"tool = 5\n", "has the wrong type"},
		"when_no_list":       {"tool = 'a_b'\neffect = 'forbid'\nwhen = 'always'\n", "has the wrong type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agentfile.Parse("[agent]\nname = 'a'\n[[capabilities.policy]]\n" + c.rule)
			if _, ok := fault.InvalidOf(err); !ok || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was imported") {
				t.Errorf("%v lacks %q", err, c.want)
			}
		})
	}
}

func TestParseRules(t *testing.T) {
	t.Parallel()
	want := []string{`forbid odoo_* when model in ["res.users"] and limit gt 5`}
	for name, text := range map[string]string{
		"json":       ` [ {"tool":"odoo_*","effect":"forbid","when":[{"arg":"model","op":"in","value":["res.users"]},{"arg":"limit","op":"gt","value":5}]}]`,
		"toml":       "[[policy]]\ntool = 'odoo_*'\neffect = 'forbid'\nwhen = [{arg='model', op='in', value=['res.users']}, {arg='limit', op='gt', value=5}]\n",
		"agent.toml": "\ufeff[agent]\nname = 'x'\n[[capabilities.policy]]\ntool = 'odoo_*'\neffect = 'forbid'\nwhen = [{arg='model', op='in', value=['res.users']}, {arg='limit', op='gt', value=5}]\n",
	} {
		rules, err := agentfile.ParseRules(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, r := range rules {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "there is no rule in it"},
		"empty_list":       {"[]", ""},
		"misspelt_table":   {"[[capabilities.polcy]]\ntool = 'a'\n", "there is no rule in it"},
		"misspelt_member":  {"[[policy]]\ntol = 'a'\n", "line 2: policy.tol is no member of a rule"},
		"misspelt_in_json": {`[{"tol":"a"}]`, "no such member"},
		"broken_json":      {`[{"tool":`, "not valid JSON"},
		"broken_toml":      {"[[policy]\n", "line 1: "},
		"wrong_type":       {"[[policy]]\ntool = 5\n", "line 2: "},
		"nul":              {"[[policy]]\ntool = 'a\x00'\n", "NUL"},
		"long":             {strings.Repeat("#", agentfile.MaxSize+1), "at most"},
	} {
		_, err := agentfile.ParseRules(c.text)
		invalid, ok := fault.InvalidOf(err)
		if !ok || invalid.Parameter != "source" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v lacks %q", name, err, c.want)
		}
	}
}
