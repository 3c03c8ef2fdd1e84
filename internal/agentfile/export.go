package agentfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

// nothing is an entry of allowed_tools that names no tool: in this file, an
// empty list means every tool.
const nothing = "-"

// fresh is a new file. Of the flags it has those of what the agent may do: an
// import denies the others' tools, and DuDuClaw opens none of them.
func fresh(a Agent) string {
	text := "[agent]\nname = " + quoted(a.ID) + "\n\n[capabilities]\n"
	for _, f := range flagged {
		if f.granted(a) {
			text += f.key + " = true\n"
		}
	}
	return text
}

// Export is the text of an agent.toml that says what an agent is now: its
// source with the values changed that are others now, and every other byte as
// it was. Without a source it is a new file. The keys that the file cannot say
// are listed: an import would read them otherwise.
func Export(a Agent) (text string, lost []string) {
	source := cmp.Or(a.Source, fresh(a))
	before, err := Parse(source)
	if err != nil {
		return source, []string{"everything since its import, because the stored text is not good any more"}
	}
	text, err = apply(source, changes(before, a))
	if err == nil && !sameRules(before.Rules, a.Rules) {
		text, err = withRules(text, a.Rules)
	}
	if err != nil {
		text = source
	}
	after, err := Parse(text)
	if err != nil {
		text, after = source, before
	}
	for _, e := range changes(after, a) {
		lost = append(lost, strings.Join(e.path, "."))
	}
	if !sameRules(after.Rules, a.Rules) {
		lost = append(lost, "capabilities.policy")
	}
	return text, lost
}

// changes are the edits that lead from one agent to another.
func changes(from, to Agent) []edit {
	var edits []edit
	differ := func(key, value string) {
		edits = append(edits, edit{strings.Split(key, "."), value})
	}
	for _, t := range []struct{ key, from, to string }{
		{"agent.display_name", from.DisplayName, to.DisplayName}, {"agent.role", from.Role, to.Role}, {"agent.status", from.State, to.State},
		{"agent.trigger", from.Trigger, to.Trigger}, {"agent.reports_to", from.ReportsTo, to.ReportsTo}, {"agent.icon", from.Icon, to.Icon},
		{"model.preferred", from.Model, to.Model},
	} {
		if t.from != t.to {
			differ(t.key, quoted(t.to))
		}
	}
	optional(differ, "model.fallback", from.FallbackModel, to.FallbackModel, quoted)
	optional(differ, "model.api_mode", from.APIMode, to.APIMode, quoted)
	optional(differ, "budget.monthly_limit_cents", from.BudgetCents, to.BudgetCents, func(n int64) string { return strconv.FormatInt(n, 10) })
	optional(differ, "container.max_concurrent", from.MaxConcurrent, to.MaxConcurrent, strconv.Itoa)
	optional(differ, "heartbeat.enabled", from.HeartbeatEnabled, to.HeartbeatEnabled, strconv.FormatBool)
	optional(differ, "heartbeat.cron", named(from.HeartbeatCron), named(to.HeartbeatCron), quoted)
	for _, name := range slices.Sorted(maps.Keys(to.Evolution)) {
		if value := to.Evolution[name]; from.Evolution[name] != value {
			differ("evolution."+name, word(value))
		}
	}
	for _, f := range flagged {
		if f.granted(to) && !f.granted(from) {
			differ("capabilities."+f.key, "true")
		}
	}
	for _, l := range []struct {
		key      string
		from, to []string
	}{
		{"allowed_tools", from.Allowed, to.Allowed}, {"denied_tools", from.Denied, to.Denied},
		{"approval_required_tools", from.ApprovalRequired, to.ApprovalRequired}, {"scoped_tools", from.Scoped, to.Scoped},
	} {
		if slices.Equal(l.from, l.to) || l.key == "denied_tools" && slices.Equal(withoutIdle(l.from, to.Allowed), withoutIdle(l.to, to.Allowed)) {
			continue
		}
		if l.key == "allowed_tools" && len(l.to) == 0 {
			l.to = []string{nothing}
		}
		differ("capabilities."+l.key, inline(l.to))
	}
	return edits
}

// optional compares what may not have been said: then the file keeps its word.
func optional[T comparable](differ func(key, value string), key string, from, to *T, write func(T) string) {
	if to != nil && (from == nil || *from != *to) {
		differ(key, write(*to))
	}
}

func named(cron *string) *string {
	if cron == nil {
		return nil
	}
	text := namedWeekdays(*cron)
	return &text
}

// word writes true, false and numbers bare, and everything else as text.
func word(value string) string {
	if value == "true" || value == "false" {
		return value
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil && json.Valid([]byte(value)) {
		return value
	}
	return quoted(value)
}

// quoted is a basic string of TOML; JSON's escapes are among its own.
func quoted(text string) string {
	encoded, err := tool.Marshal(text)
	if err != nil {
		return `""` // never: any text can be encoded
	}
	return strings.ReplaceAll(string(encoded), "\x7f", `\u007f`)
}

// inline writes a JSON value, or a list of texts, on one line.
func inline(value any) string {
	switch v := value.(type) {
	case []string:
		parts := make([]string, len(v))
		for i, text := range v {
			parts[i] = quoted(text)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			parts[i] = inline(element)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quoted(name)+" = "+inline(v[name]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case string:
		return quoted(v)
	}
	return fmt.Sprint(value) // numbers and booleans
}

// withRules replaces the argument rules.
func withRules(text string, rules []policy.Rule) (string, error) {
	list, err := asJSON(rules)
	if err != nil {
		return "", err
	}
	if text, err = without(text, "capabilities", "policy"); err != nil {
		return "", err
	}
	return apply(text, []edit{{[]string{"capabilities", "policy"}, inline(list)}})
}

func asJSON(rules []policy.Rule) ([]any, error) {
	encoded, err := tool.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(encoded)))
	dec.UseNumber()
	list := []any{}
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return list, nil
}

func sameRules(a, b []policy.Rule) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, err1 := tool.Marshal(a)
	y, err2 := tool.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
