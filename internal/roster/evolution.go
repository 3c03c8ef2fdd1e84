package roster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/fault"
)

// kind is what the value of a setting is.
type kind string

const (
	flag    kind = "boolean"
	whole   kind = "whole number"
	decimal kind = "number"
	choice  kind = "choice"
)

// Setting is one way in which an agent improves itself, as the predecessor's
// [evolution] has it.
type Setting struct {
	Name     string
	kind     kind
	min, max float64
	choices  []string
	Operator bool // only an operator sets it
}

// Settings are those that there are, in the order in which they are shown.
var Settings = []Setting{
	{Name: "gvu_enabled", kind: flag},
	{Name: "skill_auto_activate", kind: flag},
	// Whoever could switch the scan off would run unscanned skills.
	{Name: "skill_security_scan", kind: flag, Operator: true},
	{Name: "max_silence_hours", kind: decimal, min: 0, max: 8760},
	{Name: "max_gvu_generations", kind: whole, min: 0, max: 100},
	{Name: "observation_period_hours", kind: decimal, min: 0, max: 8760},
	{Name: "skill_token_budget", kind: whole, min: 0, max: 200_000},
	{Name: "max_active_skills", kind: whole, min: 0, max: 100},
	{Name: "stagnation_enabled", kind: flag},
	{Name: "stagnation_window_seconds", kind: whole, min: 60, max: 604_800},
	{Name: "stagnation_trigger_threshold", kind: whole, min: 1, max: 1000},
	{Name: "stagnation_action", kind: choice, choices: []string{"log_only", "suppress"}},
}

// alias are the names of the predecessor's tool for the same things.
var alias = map[string]string{
	"window_seconds": "stagnation_window_seconds", "trigger_threshold": "stagnation_trigger_threshold", "action": "stagnation_action",
}

// FindSetting finds one by its name; the error, about the parameter field, has
// those that there are.
func FindSetting(name string) (Setting, error) {
	if other, ok := alias[name]; ok {
		name = other
	}
	var names []string
	for _, s := range Settings {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Setting{}, fault.Invalid("field", "field must be one of %s", strings.Join(names, ", "))
}

// Read gives a value, written as a word, as JSON. The error is about the
// parameter value and says what it must be.
func (s Setting) Read(word string) (json.RawMessage, error) {
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
	return nil, fault.Invalid("value", "value of %s must be %s", s.Name, s.Allowed())
}

// Allowed says what a value may be.
func (s Setting) Allowed() string {
	switch s.kind {
	case flag:
		return "true or false"
	case choice:
		return "one of " + strings.Join(s.choices, ", ")
	}
	return fmt.Sprintf("a %s from %s to %s", s.kind, strconv.FormatFloat(s.min, 'f', -1, 64), strconv.FormatFloat(s.max, 'f', -1, 64))
}

// Current is the value among what was set, a JSON object; null when nobody has
// set it.
func (s Setting) Current(evolution string) (json.RawMessage, error) {
	var set map[string]json.RawMessage
	if err := json.Unmarshal([]byte(evolution), &set); err != nil {
		return nil, fmt.Errorf("read evolution: %w", err)
	}
	if v, ok := set[s.Name]; ok {
		return bytes.TrimSpace(v), nil
	}
	return json.RawMessage("null"), nil
}
