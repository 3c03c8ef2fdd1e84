package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	toml "github.com/pelletier/go-toml/v2"

	"pawgate/internal/fault"
	"pawgate/internal/policy"
)

// ParseRules reads argument rules that an operator wrote for pawgate: a JSON
// list as policy.ParseRules takes it, or TOML with [[policy]] or, as in a whole
// agent.toml, [[capabilities.policy]]. A misspelt member is refused, and so is
// a text without rules, which would remove those that there are.
//
// Whether the rules make sense is for policy.CheckRules. The error is a
// *fault.InvalidArgument for the parameter source.
func ParseRules(text string) ([]policy.Rule, error) {
	switch {
	case len(text) > MaxSize:
		return nil, fault.Invalid("source", "the rules have %d bytes; at most %d are read", len(text), MaxSize)
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return nil, fault.Invalid("source", "the rules are not UTF-8, or hold a NUL character")
	}
	rules, err := parseRules(strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")))
	switch {
	case err != nil:
		return nil, fault.Invalid("source", "%s", err.Error())
	case len(rules) == 0:
		return nil, fault.Invalid("source", "there is no rule in it; write [[policy]] with tool, effect and when, or remove all rules with clear")
	}
	return rules, nil
}

func parseRules(text string) ([]policy.Rule, error) {
	if rest, list := strings.CutPrefix(text, "["); list && strings.HasPrefix(strings.TrimSpace(rest), "{") {
		return policy.ParseRules([]byte(text))
	}
	var file struct {
		Policy       []policy.Rule `toml:"policy"`
		Capabilities struct {
			Policy []policy.Rule `toml:"policy"`
		} `toml:"capabilities"`
	}
	dec := toml.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&file)
	var unknown *toml.StrictMissingError
	var broken *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		for _, missing := range unknown.Errors {
			if line, member := inRule(missing.Key(), missing); member != "" {
				return nil, fmt.Errorf("line %d: %s", line, member)
			}
		}
	case errors.As(err, &broken):
		line, _ := broken.Position()
		return nil, fmt.Errorf("line %d: %s", line, strings.TrimPrefix(broken.Error(), "toml: "))
	case err != nil:
		return nil, errors.New("it cannot be read as TOML")
	}
	return typed(append(file.Policy, file.Capabilities.Policy...))
}

// inRule tells of an unknown key what is wrong with it, if it stands in a rule.
func inRule(key toml.Key, at toml.DecodeError) (line int, problem string) {
	if len(key) < 2 || key[0] != "policy" && (key[0] != "capabilities" || key[1] != "policy") {
		return 0, ""
	}
	line, _ = at.Position()
	return line, fmt.Sprintf("%s is no member of a rule; a rule has tool, effect and when, a condition arg, op and value", shorten(strings.Join(key, ".")))
}

// typed brings the values of TOML into the types of JSON, which is how the
// rules are stored: what is checked is what will be applied.
func typed(rules []policy.Rule) ([]policy.Rule, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	encoded, err := json.Marshal(rules)
	if err != nil {
		return nil, errors.New("a value of a rule is none of text, number, true, false, time and list")
	}
	return policy.ParseRules(encoded)
}

// families are the selectors of the predecessor for the tools of a coding
// agent, which never come through this gate.
var families = []string{"fs_write", "shell_exec"}

// rules takes over [[capabilities.policy]]. There a call that no allow or ask
// rule matched was refused; here the lists stand. So where a policy has allow
// rules, the tools of allow and ask rules are all that stays allowed.
func (p *parser) rules() error {
	given, err := typed(p.file.Capabilities.Policy)
	if err != nil {
		return invalid("capabilities.policy: %s", err.Error())
	}
	const key = "capabilities.policy"
	var dropped, open []string
	for _, r := range given {
		name := r.Tool
		if name == "mcp_call" { // there: every tool that is not a coding agent's own
			name = "*"
		}
		base, ok := toPattern(name, direction(r.Effect == policy.Allow))
		if !ok || slices.Contains(families, base) {
			dropped = append(dropped, shorten(r.Tool))
			continue
		}
		r.Tool = base
		p.agent.Rules = append(p.agent.Rules, r)
		if r.Effect != policy.Forbid {
			open = append(open, base)
		}
	}
	if len(dropped) > 0 {
		p.note(key, 0, "names no tool of pawgate, kept in the stored text only: %s", strings.Join(dropped, ", "))
	}
	if !slices.ContainsFunc(given, func(r policy.Rule) bool { return r.Effect == policy.Allow }) {
		if len(given) > 0 {
			p.note(key, 0, "DuDuClaw refused whatever no allow or ask rule matched; here the lists decide on it")
		}
		return nil
	}
	if narrowed := intersect(p.agent.Allowed, open); !slices.Contains(open, "*") && !slices.Equal(narrowed, p.agent.Allowed) {
		p.agent.Allowed = narrowed
		p.note(key, 0, "DuDuClaw refused whatever no allow or ask rule matched, so allowed_tools became the tools of these rules: %s", strings.Join(narrowed, ", "))
	}
	p.askAlways()
	return nil
}

// askAlways makes the ask rules of tools without an allow rule unconditional:
// the calls that such a rule did not match were refused.
func (p *parser) askAlways() {
	for i, r := range p.agent.Rules {
		allowed := func(other policy.Rule) bool { return other.Effect == policy.Allow && covers(other.Tool, r.Tool) }
		if r.Effect != policy.Ask || len(r.When) == 0 || slices.ContainsFunc(p.agent.Rules, allowed) {
			continue
		}
		p.agent.Rules[i].When = nil
		p.note("capabilities.policy", 0, "rule %d asks for every call of %s: DuDuClaw refused those that its conditions did not match", i+1, r.Tool)
	}
}

// intersect gives what two lists of patterns both cover.
func intersect(a, b []string) []string {
	out := []string{}
	for _, x := range a {
		for _, y := range b {
			switch {
			case covers(x, y):
				out = union(out, []string{y})
			case covers(y, x):
				out = union(out, []string{x})
			}
		}
	}
	return out
}

// covers reports whether a pattern covers everything that another covers.
func covers(pattern, other string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(other, prefix)
	}
	return pattern == other
}
