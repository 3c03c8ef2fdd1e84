package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/category/agent"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type toggled struct {
	Field   string
	Before  json.RawMessage
	Value   json.RawMessage
	Changed bool
	Note    string
}

type evolution struct {
	AgentID  string `json:"agent_id"`
	Settings []struct {
		Field string
		Value json.RawMessage
	}
}

func (e evolution) of(field string) string {
	for _, s := range e.Settings {
		if s.Field == field {
			return string(s.Value)
		}
	}
	return "missing"
}

func TestEvolutionToggle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, field, value, want string }{
		{"boolean", "gvu_enabled", `true`, `true`},
		{"boolean_in_words", "gvu_enabled", `"On"`, `true`},
		{"boolean_as_number", "skill_auto_activate", `1`, `true`},
		{"float", "max_silence_hours", `0.5`, `0.5`},
		{"float_as_text", "observation_period_hours", `"36"`, `36`},
		{"whole", "max_active_skills", `7`, `7`},
		{"whole_with_a_point", "max_active_skills", `7.0`, `7`},
		{"predecessor's_name", "window_seconds", `"60"`, `60`},
		{"word", "action", `"suppress"`, `"suppress"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			args := `{"agent_id":"coder","field":"` + c.field + `","value":` + c.value + `}`
			got := tooltest.OK[toggled](t, b.cat, tooltest.Who("lead"), "evolution_toggle", args)
			if !strings.Contains(got.Note, "starts no evolution") { // or it is relied on
				t.Errorf("the note is %q", got.Note)
			}
			if string(got.Before) != "null" || string(got.Value) != c.want || !got.Changed {
				t.Errorf("got %s → %s, changed %v", got.Before, got.Value, got.Changed)
			}
			if again := tooltest.OK[toggled](t, b.cat, tooltest.Who("lead"), "evolution_toggle", args); again.Changed || string(again.Before) != c.want {
				t.Errorf("a second time: %+v", again)
			}
			value := tooltest.OK[evolution](t, b.cat, tooltest.Who("lead"), "evolution_status", `{"agent_id":"coder"}`).of(got.Field)
			if value != c.want {
				t.Errorf("evolution_status shows %s", value)
			}
		})
	}
}

func TestEvolutionToggle_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, field, value, parameter string }{
		{"unknown_field", "gvu", `true`, "field"},
		{"not_a_boolean", "gvu_enabled", `"perhaps"`, "value"},
		{"float_for_whole", "max_active_skills", `1.5`, "value"},
		{"negative", "max_gvu_generations", `-1`, "value"},
		{"not_a_number", "max_silence_hours", `"NaN"`, "value"},
		{"infinite", "max_silence_hours", `"Inf"`, "value"},
		{"hexadecimal", "max_active_skills", `"0x1p2"`, "value"},
		{"window_too_short", "stagnation_window_seconds", `59`, "value"},
		{"threshold_too_high", "stagnation_trigger_threshold", `1001`, "value"},
		{"other_action", "stagnation_action", `"explode"`, "value"},
		{"list", "gvu_enabled", `[true]`, "value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tooltest.Invalid(t, b.cat, operator(), "evolution_toggle", `{"agent_id":"coder","field":"`+c.field+`","value":`+c.value+`}`, c.parameter)
		})
	}
	for _, c := range []struct {
		name, agent, field string
		who                caller.Caller
		want               fault.Reason
	}{
		// In the predecessor any agent could switch the scan off for any other.
		{"scan_of_its_own", "coder", "skill_security_scan", tooltest.Who("coder"), fault.Denied},
		{"scan_of_a_report", "coder", "skill_security_scan", tooltest.Who("lead"), fault.Denied},
		{"AUTH-04_beside", "clerk", "gvu_enabled", tooltest.Who("lead"), fault.NotFound},
		{"unknown", "nobody", "gvu_enabled", operator(), fault.NotFound},
		{"archived", "old", "gvu_enabled", operator(), fault.Conflict},
		{"path", "../coder", "gvu_enabled", operator(), fault.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			tooltest.Fault(t, b.cat, c.who, "evolution_toggle", map[string]any{"agent_id": c.agent, "field": c.field, "value": false}, c.want)
		})
	}
	tooltest.OK[toggled](t, b.cat, operator(), "evolution_toggle", `{"agent_id":"coder","field":"skill_security_scan","value":false}`)
	if got := tooltest.OK[toggled](t, b.cat, tooltest.Who("coder"), "evolution_toggle", `{"agent_id":"coder","field":"cognitive_memory","value":false}`); got.Changed || got.Note == "" {
		t.Errorf("cognitive_memory: %+v", got)
	}
}

// Settings of an agent are set side by side without one undoing another.
func TestEvolutionToggle_at_once(t *testing.T) {
	t.Parallel()
	pool := clonePool(t)
	cat := agent.New(pool, clock)
	fields := []string{"gvu_enabled", "skill_auto_activate", "stagnation_enabled"}
	together(len(fields), func(i int) tool.Outcome {
		return tooltest.Call(t, cat, tooltest.Who("boss"), "evolution_toggle", map[string]any{"agent_id": "bot", "field": fields[i], "value": true})
	})
	got := tooltest.OK[evolution](t, cat, tooltest.Who("bot"), "evolution_status", `{}`)
	for _, field := range fields {
		if value := got.of(field); value != "true" {
			t.Errorf("%s is %s", field, value)
		}
	}
}

func TestEvolutionStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := tooltest.OK[evolution](t, b.cat, tooltest.Who("coder"), "evolution_status", `{}`)
	if value := got.of("skill_security_scan"); got.AgentID != "coder" || value != "null" {
		t.Errorf("%s: the scan, which nobody has set, is %s", got.AgentID, value)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("coder"), "evolution_status", `{"agent_id":"lead"}`, fault.NotFound)
}
