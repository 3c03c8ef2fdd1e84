package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// scalar is an argument that may be a text, a number or a boolean.
type scalar json.RawMessage

// JSONSchema publishes the three types.
func (scalar) JSONSchema() *tool.Schema {
	return &tool.Schema{Types: []string{"string", "number", "boolean"}}
}

// UnmarshalJSON keeps the text.
func (s *scalar) UnmarshalJSON(b []byte) error {
	*s = slices.Clone(b)
	return nil
}

// word is the value as text, without quotes.
func (s scalar) word() string {
	var text string
	if json.Unmarshal(s, &text) == nil {
		return strings.TrimSpace(text)
	}
	return string(s)
}

// kind is what the value of a setting is.
type kind string

const (
	flag    kind = "boolean"
	whole   kind = "whole number"
	decimal kind = "number"
	choice  kind = "choice"
)

// setting is one way in which an agent improves itself, as the predecessor's
// [evolution] has it.
type setting struct {
	name     string
	kind     kind
	usual    string // JSON
	min, max float64
	choices  []string
	operator bool // only an operator sets it
}

// settings is the table, in the order in which they are shown.
var settings = []setting{
	{name: "gvu_enabled", kind: flag, usual: "false"},
	{name: "skill_auto_activate", kind: flag, usual: "false"},
	// Whoever could switch the scan off would run unscanned skills.
	{name: "skill_security_scan", kind: flag, usual: "true", operator: true},
	{name: "max_silence_hours", kind: decimal, usual: "12", min: 0, max: 8760},
	{name: "max_gvu_generations", kind: whole, usual: "3", min: 0, max: 100},
	{name: "observation_period_hours", kind: decimal, usual: "24", min: 0, max: 8760},
	{name: "skill_token_budget", kind: whole, usual: "2500", min: 0, max: 200_000},
	{name: "max_active_skills", kind: whole, usual: "5", min: 0, max: 100},
	{name: "stagnation_enabled", kind: flag, usual: "false"},
	{name: "stagnation_window_seconds", kind: whole, usual: "3600", min: 60, max: 604_800},
	{name: "stagnation_trigger_threshold", kind: whole, usual: "3", min: 1, max: 1000},
	{name: "stagnation_action", kind: choice, usual: `"log_only"`, choices: []string{"log_only", "suppress"}},
}

// alias are the names of the predecessor's tool for the same things.
var alias = map[string]string{
	"window_seconds": "stagnation_window_seconds", "trigger_threshold": "stagnation_trigger_threshold", "action": "stagnation_action",
}

// findSetting fails with the list of those that there are.
func findSetting(name string) (setting, error) {
	if other, ok := alias[name]; ok {
		name = other
	}
	var names []string
	for _, s := range settings {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return setting{}, fault.Invalid("field", "field must be one of %s", strings.Join(names, ", "))
}

// read gives the value as JSON, or says what it must be.
func (s setting) read(v scalar) (json.RawMessage, error) {
	word := v.word()
	switch s.kind {
	case flag:
		for value, words := range map[string][]string{"true": {"true", "1", "yes", "on"}, "false": {"false", "0", "no", "off"}} {
			if slices.Contains(words, strings.ToLower(word)) {
				return json.RawMessage(value), nil
			}
		}
	case choice:
		if slices.Contains(s.choices, word) {
			return json.Marshal(word)
		}
	case whole, decimal:
		n, err := strconv.ParseFloat(word, 64)
		if err == nil && json.Valid([]byte(word)) && n >= s.min && n <= s.max && (s.kind == decimal || n == math.Trunc(n)) {
			return json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64)), nil
		}
	}
	return nil, fault.Invalid("value", "value of %s must be %s", s.name, s.allowed())
}

// allowed says what a value may be.
func (s setting) allowed() string {
	switch s.kind {
	case flag:
		return "true or false"
	case choice:
		return "one of " + strings.Join(s.choices, ", ")
	}
	return fmt.Sprintf("a %s from %s to %s", s.kind, strconv.FormatFloat(s.min, 'f', -1, 64), strconv.FormatFloat(s.max, 'f', -1, 64))
}

// current is the value that holds, and whether somebody set it.
func (s setting) current(evolution string) (json.RawMessage, bool, error) {
	var set map[string]json.RawMessage
	if err := json.Unmarshal([]byte(evolution), &set); err != nil {
		return nil, false, fmt.Errorf("read evolution: %w", err)
	}
	if v, ok := set[s.name]; ok {
		return bytes.TrimSpace(v), true, nil
	}
	return json.RawMessage(s.usual), false, nil
}
