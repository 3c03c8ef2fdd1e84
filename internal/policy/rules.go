package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/fault"
)

// Effect is what a rule does with the calls it matches.
type Effect string

// The effects, strongest first: of the rules that match a call the strongest
// decides, so the order of the rules is of no account.
const (
	Forbid Effect = "forbid" // the call is refused
	Ask    Effect = "ask"    // the call needs an approval
	Allow  Effect = "allow"  // the call passes on to the rest of the gate
)

// Op compares an argument with the value of a condition.
type Op string

// The operators, and the arguments and values they take.
const (
	Equals     Op = "equals"      // text, number, true or false
	In         Op = "in"          // the same; the value is a list, one of which must be equal
	Contains   Op = "contains"    // text
	StartsWith Op = "starts_with" // text
	Match      Op = "matches"     // text; the value is an RE2 expression, found anywhere unless it has ^ and $
	Less       Op = "lt"          // number, or text that is a time (RFC 3339)
	AtMost     Op = "le"          // the same
	Greater    Op = "gt"          // the same
	AtLeast    Op = "ge"          // the same
	Exists     Op = "exists"      // any argument; the value is true (also when left out) or false
)

// Rule is one argument rule of an agent, an element of
// [[capabilities.policy]].
//
// The rules refine what the lists allow; they never widen it. Of the rules
// that cover the tool and whose conditions all hold, forbid beats ask and ask
// beats allow. When none holds, the tool is refused if some allow rule covers
// it (allow rules say what alone is meant), and otherwise the lists stand: a
// tool that only forbid and ask rules cover, or none, passes.
//
// Numbers are compared to the last digit (1, 1.0 and 10e-1 are equal). Texts are
// compared with case, after NFC, so that two encodings of the same letters are
// equal; look-alikes and other widths are not.
//
//	[[capabilities.policy]] # no table of users or rights, whatever else is allowed
//	tool = "odoo_*"
//	effect = "forbid"
//	when = [{ arg = "model", op = "in", value = ["res.users", "ir.rule"] }]
//
//	[[capabilities.policy]] # more than a hundred rows only with an approval
//	tool = "odoo_search"
//	effect = "ask"
//	when = [{ arg = "limit", op = "gt", value = 100 }]
//
//	[[capabilities.policy]] # messages to our own people, and nobody else
//	tool = "send_mail"
//	effect = "allow"
//	when = [{ arg = "to", op = "matches", value = '^[^@\s]+@example\.com$' }]
//
//	[[capabilities.policy]] # nothing from before 2025
//	tool = "memory_search"
//	effect = "forbid"
//	when = [{ arg = "filter.since", op = "lt", value = 2025-01-01T00:00:00Z }]
//
//	[[capabilities.policy]] # a search must say in which box
//	tool = "memory_search"
//	effect = "forbid"
//	when = [{ arg = "filter.box", op = "exists", value = false }]
//
//	[[capabilities.policy]] # two conditions: both must hold
//	tool = "web_fetch"
//	effect = "forbid"
//	when = [
//	  { arg = "url", op = "starts_with", value = "http://" },
//	  { arg = "method", op = "equals", value = "POST" },
//	]
//
//	[[capabilities.policy]] # a word anywhere in the text
//	tool = "send_mail"
//	effect = "ask"
//	when = [{ arg = "text", op = "contains", value = "invoice" }]
type Rule struct {
	Tool   string      `json:"tool" toml:"tool"` // a name, "memory_*" or "*"
	Effect Effect      `json:"effect" toml:"effect"`
	When   []Condition `json:"when,omitempty" toml:"when"` // all must hold; none: always
}

// Condition is a test of one argument.
//
// Arg is a path of names: "limit", "filter.since". Where the path meets a list
// it goes on with every element ("to", "items.price"), and also a list at its
// end stands for its elements. A forbid or ask rule then holds if any of the
// values passes the test; an allow rule only if there is one and all pass. What
// is absent, null or an empty list passes no comparison; only exists tells an
// absent argument from the other two.
//
// Where an argument can be of any kind, a value that cannot be compared (a word
// with lt) or that is equal only in another notation ("2" for 2) counts
// against the caller: forbid and ask rules hold, allow rules do not. A name that
// has a dot in it cannot be reached.
type Condition struct {
	Arg string `json:"arg" toml:"arg"`
	Op  Op     `json:"op" toml:"op"`
	// Value is a string, json.Number (from TOML also int64, float64 or
	// time.Time), bool, or a list of them.
	Value any `json:"value,omitempty" toml:"value"`
}

// UnmarshalJSON keeps every digit of numbers and refuses unknown members.
func (c *Condition) UnmarshalJSON(b []byte) error {
	return c.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(b), jsonv2.RejectUnknownMembers(true)))
}

// UnmarshalJSONFrom is UnmarshalJSON within a larger text.
func (c *Condition) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var wire struct {
		Arg   string         `json:"arg"`
		Op    Op             `json:"op"`
		Value jsontext.Value `json:"value"`
	}
	if err := jsonv2.UnmarshalDecode(dec, &wire); err != nil {
		return err
	}
	*c = Condition{Arg: wire.Arg, Op: wire.Op}
	var err error
	switch wire.Value.Kind() {
	case 0, 'n':
	case '"':
		var text []byte
		text, err = jsontext.AppendUnquote(nil, wire.Value)
		c.Value = string(text)
	case '0':
		c.Value = json.Number(wire.Value)
	case 't', 'f':
		c.Value = wire.Value.Kind() == 't'
	default:
		c.Value, err = decode(wire.Value)
	}
	return err
}

// decode reads JSON without losing a digit.
func decode(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// ParseRules reads the JSON list of an agent's rules, as it is stored. It
// refuses a misspelt member, a member given twice and a wrong type. Whether the
// rules make sense is for CheckRules, when they are written. A gate that cannot
// parse the rules of an agent must refuse the call.
//
// The error is a *fault.InvalidArgument for the parameter policy.
func ParseRules(text []byte) ([]Rule, error) {
	var rules []Rule
	err := jsonv2.Unmarshal(text, &rules, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return rules, nil
	}
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return nil, fault.Invalid("policy", "policy is not valid JSON, or has a member twice")
	}
	where := pointerWords(semantic.JSONPointer)
	for errors.As(semantic.Err, &semantic) { // from a condition: the rest of the way
		where += " " + pointerWords(semantic.JSONPointer)
	}
	if errors.Is(semantic.Err, jsonv2.ErrUnknownName) {
		return nil, fault.Invalid("policy", "%s: no such member; a rule has tool, effect and when, a condition arg, op and value", where)
	}
	return nil, fault.Invalid("policy", "%s has the wrong type", where)
}

// pointerWords turns "/1/when/0/op" into "rule 2 condition 1 op".
func pointerWords(p jsontext.Pointer) string {
	words := []string{}
	for token := range p.Tokens() {
		var n int
		if _, err := fmt.Sscanf(token, "%d", &n); err == nil {
			token = fmt.Sprint(n + 1)
			if len(words) == 0 {
				token = "rule " + token
			}
		} else if token == "when" {
			token = "condition"
		}
		words = append(words, token)
	}
	if len(words) == 0 {
		return "policy"
	}
	return strings.Join(words, " ")
}

// EvaluateRules applies the rules to one call, with the tool's base name and
// its normalised arguments. It returns the effect and the number (from 0) of the
// first rule that has it. The effect is "" and the number -1 when the rules
// leave the call to the lists, and Forbid and -1 when the tool has allow rules
// and none of them holds.
//
// What cannot be understood is held against the call: a rule with an unknown
// effect forbids, and a condition that is broken holds in a forbid or ask rule
// and fails in an allow rule.
func EvaluateRules(rules []Rule, toolName string, arguments []byte) (Effect, int) {
	call := evaluation{arguments: arguments}
	best, reserved := -1, false
	for i, r := range rules {
		if !Matches(r.Tool, toolName) {
			continue
		}
		reserved = reserved || r.Effect == Allow
		if (best < 0 || r.Effect.rank() > rules[best].Effect.rank()) && call.holds(r) {
			best = i
		}
	}
	switch {
	case best >= 0 && rules[best].Effect.rank() == Forbid.rank():
		return Forbid, best
	case best >= 0:
		return rules[best].Effect, best
	case reserved:
		return Forbid, -1
	}
	return "", -1
}

func (e Effect) rank() int {
	switch e {
	case Allow:
		return 1
	case Ask:
		return 2
	}
	return 3 // forbid, and whatever is not known
}

// evaluation is one call under test. The arguments are decoded only when a
// rule that covers the tool has a condition.
type evaluation struct {
	arguments []byte
	decoded   bool
	root      any
	broken    bool
}

func (e *evaluation) holds(r Rule) bool {
	for _, c := range r.When {
		if !e.condition(c, r.Effect == Allow) {
			return false
		}
	}
	return true
}

// condition tests the values that the path leads to: all of them must pass
// for an allow rule, one is enough for the others.
func (e *evaluation) condition(c Condition, all bool) bool {
	if !e.decoded {
		root, err := decode(e.arguments)
		_, object := root.(map[string]any)
		e.decoded, e.root, e.broken = true, root, err != nil || !object
	}
	test, ok := c.test()
	if !ok || e.broken {
		return !all
	}
	anyPassed, allPassed := false, true
	try := func(v any, present bool) {
		got := test(v, present)
		anyPassed = anyPassed || got != no
		allPassed = allPassed && got == yes
	}
	reach(e.root, strings.Split(c.Arg, "."), c.Op != Exists, try)
	if all {
		return allPassed
	}
	return anyPassed
}

// String says a rule in words, for "agent explain".
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Effect, r.Tool)
	for i, c := range r.When {
		b.WriteString([]string{" when ", " and "}[min(i, 1)])
		fmt.Fprintf(&b, "%s %s", c.Arg, c.Op)
		if c.Value != nil {
			value, err := json.Marshal(c.Value)
			if err != nil {
				value = []byte("?")
			}
			fmt.Fprintf(&b, " %s", value)
		}
	}
	return b.String()
}
