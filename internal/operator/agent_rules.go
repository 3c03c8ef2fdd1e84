package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

type rulesArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Source  string `json:"source,omitempty" doc:"The rules, all of them: [[policy]] in TOML, or a JSON list; left out: show those there are"`
	Remove  []int  `json:"remove,omitempty" doc:"Remove the rules of these numbers"`
	Clear   bool   `json:"clear,omitempty" doc:"Remove all rules"`
}

// Validate refuses two wishes at once.
func (a rulesArgs) Validate() error {
	wishes := 0
	for _, wish := range []bool{a.Source != "", len(a.Remove) > 0, a.Clear} {
		if wish {
			wishes++
		}
	}
	if wishes > 1 {
		return fault.Invalid("source", "source, remove and clear exclude each other")
	}
	return nil
}

type rulesResult struct {
	AgentID string          `json:"agent_id"`
	Rules   []string        `json:"rules"`  // in words, with their numbers
	Policy  json.RawMessage `json:"policy"` // as they are stored, to be edited and set again
	Changed bool            `json:"changed"`
}

// agentRules shows or replaces the rules. What could only be ignored when it
// runs (an unknown tool or argument, a value of a wrong type) is refused here.
func (s *session) agentRules(ctx context.Context, _ caller.Caller, a rulesArgs) (rulesResult, error) {
	if err := s.lock(ctx); err != nil {
		return rulesResult{}, err
	}
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return rulesResult{}, err
	}
	rules, err := row.rules()
	if err != nil {
		return rulesResult{}, err
	}
	before := sentences(rules)
	switch {
	case a.Source != "":
		rules, err = agentfile.ParseRules(a.Source)
		if err == nil {
			err = s.checkRules(rules)
		}
	case a.Clear:
		rules = nil
	default:
		rules, err = without(rules, a.Remove)
	}
	if err != nil {
		return rulesResult{}, err
	}
	if err := row.setRules(rules); err != nil {
		return rulesResult{}, err
	}
	r := rulesResult{AgentID: a.AgentID, Rules: sentences(rules), Policy: json.RawMessage(row.Policy)}
	if r.Changed = !slices.Equal(before, r.Rules); r.Changed {
		_, err = s.write(ctx, row)
	}
	return r, err
}

// checkRules refuses rules that could not work.
func (s *session) checkRules(rules []policy.Rule) error {
	if err := policy.CheckRules(rules, s.schemas()); err != nil {
		return fault.Invalid("source", "%s", err.Error())
	}
	return nil
}

// without removes rules by their numbers, from 1.
func without(rules []policy.Rule, numbers []int) ([]policy.Rule, error) {
	kept := []policy.Rule{}
	for i, r := range rules {
		if !slices.Contains(numbers, i+1) {
			kept = append(kept, r)
		}
	}
	for _, n := range numbers {
		if n < 1 || n > len(rules) {
			return nil, fault.Invalid("remove", "there is no rule %d; the agent has %d", n, len(rules))
		}
	}
	return kept, nil
}

// schemas are the arguments of every tool.
func (s *session) schemas() iter.Seq2[string, *tool.Schema] {
	return func(yield func(string, *tool.Schema) bool) {
		for _, e := range s.Catalog.All() {
			if !yield(e.Name, e.Schema()) {
				return
			}
		}
	}
}

func (a stored) rules() ([]policy.Rule, error) {
	rules, err := policy.ParseRules([]byte(a.Policy))
	if err != nil {
		return nil, fmt.Errorf("read rules of agent %s: %w", a.AgentID, err)
	}
	return rules, nil
}

func (a *stored) setRules(rules []policy.Rule) error {
	if rules == nil {
		rules = []policy.Rule{}
	}
	encoded, err := tool.Marshal(rules)
	if err != nil {
		return fmt.Errorf("encode rules: %w", err)
	}
	a.Policy = string(encoded)
	return nil
}

// sentences says rules in words.
func sentences(rules []policy.Rule) []string {
	list := []string{}
	for i, r := range rules {
		list = append(list, fmt.Sprintf("%d: %s", i+1, r))
	}
	return list
}
