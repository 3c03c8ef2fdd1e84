package policy

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Bounds of an agent's rules, so that a decision stays cheap.
const (
	MaxRules      = 200
	maxConditions = 16
	maxChoices    = 1000 // in
	maxExpression = 1000 // matches, in bytes
)

// CheckRules refuses, when rules are written, what could only be ignored when
// they run: an unknown effect or operator, a tool or argument that does not
// exist, an operator or value that does not fit the argument's type, a broken
// expression. tools are all tools by name, with their argument schemas.
//
// A pattern of several tools needs the argument in one of them at least, and a
// fitting type wherever the argument exists; for the tools without it the
// condition is that of an absent argument.
//
// The error is a *fault.InvalidArgument for the parameter policy; its sentence
// begins with the number of the rule, from 1.
func CheckRules(rules []Rule, tools iter.Seq2[string, *tool.Schema]) error {
	if len(rules) > MaxRules {
		return fault.Invalid("policy", "an agent can have %d rules, not %d; join some with in or matches", MaxRules, len(rules))
	}
	for i, r := range rules {
		if err := r.check(tools); err != nil {
			return fault.Invalid("policy", "rule %d: %v", i+1, err)
		}
	}
	return nil
}

// patternForm is a tool's name, whole words with "_*", or "*".
var patternForm = regexp.MustCompile(`^(\*|[a-z][a-z0-9]*(_[a-z0-9]+)*(_\*)?)$`)

func (r Rule) check(tools iter.Seq2[string, *tool.Schema]) error {
	switch {
	case r.Effect != Allow && r.Effect != Ask && r.Effect != Forbid:
		return fmt.Errorf("effect must be allow, ask or forbid, not %q", short(string(r.Effect)))
	case r.Tool == "":
		return fmt.Errorf("tool is missing; name a tool, or several as memory_* or *")
	case BaseName(r.Tool) != r.Tool:
		return fmt.Errorf("tool must be written without the client's prefix: %s", short(BaseName(r.Tool)))
	case !patternForm.MatchString(r.Tool):
		return fmt.Errorf("tool must be a name, memory_* or *, not %q", short(r.Tool))
	case len(r.When) > maxConditions:
		return fmt.Errorf("a rule can have %d conditions, not %d; split it", maxConditions, len(r.When))
	}
	covered := map[string]*tool.Schema{}
	for name, schema := range tools {
		if Matches(r.Tool, name) {
			covered[name] = schema
		}
	}
	if len(covered) == 0 {
		return fmt.Errorf("there is no tool %s", r.Tool)
	}
	for i, c := range r.When {
		if err := r.checkCondition(c, covered); err != nil {
			return fmt.Errorf("condition %d: %w", i+1, err)
		}
	}
	return nil
}

func (r Rule) checkCondition(c Condition, covered map[string]*tool.Schema) error {
	if err := c.check(r.Effect); err != nil {
		return err
	}
	var missing error
	found := false
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		leaf, err := locate(covered[name], c.Arg)
		if err != nil {
			missing = fmt.Errorf("%s: %w", name, err)
			continue
		}
		found = true
		if err := c.fits(leaf); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case found:
		return nil
	case len(covered) > 1:
		return fmt.Errorf("no tool of %s has an argument %s", r.Tool, short(c.Arg))
	}
	return missing
}

// check is what can be said of a condition without knowing the argument.
func (c Condition) check(effect Effect) error {
	if c.Arg == "" {
		return fmt.Errorf("arg is missing; name an argument, such as limit or filter.since")
	}
	value, ok := plain(c.Value)
	list, isList := value.([]any)
	switch c.Op {
	case Equals:
		if !ok || isList || value == nil {
			return fmt.Errorf("equals needs a text, a number, true or false as its value; for several use in")
		}
	case In:
		if !ok || !isList || len(list) == 0 || len(list) > maxChoices || slices.ContainsFunc(list, notScalar) {
			return fmt.Errorf("in needs a list of 1 to %d texts or numbers as its value", maxChoices)
		}
	case Contains, StartsWith:
		if text, _ := value.(string); text == "" {
			return fmt.Errorf("%s needs a text as its value", c.Op)
		}
	case Match:
		return checkExpression(value, effect)
	case Less, AtMost, Greater, AtLeast:
		if _, ok := order(value); !ok {
			return fmt.Errorf("%s needs a number, or a time such as 2026-12-01T10:00:00Z, as its value", c.Op)
		}
	case Exists:
		if _, isBool := value.(bool); !isBool && c.Value != nil {
			return fmt.Errorf("exists needs true or false as its value, or none")
		}
	default:
		return fmt.Errorf("op must be one of equals, in, contains, starts_with, matches, lt, le, gt, ge and exists, not %q", short(string(c.Op)))
	}
	return nil
}

func notScalar(v any) bool {
	_, isList := v.([]any)
	return isList
}

// checkExpression refuses an expression that is found anywhere in the text
// when that is what a rule allows: "example\.com" would also allow
// "https://evil.example/?example.com".
func checkExpression(value any, effect Effect) error {
	text, _ := value.(string)
	if text == "" || len(text) > maxExpression {
		return fmt.Errorf("matches needs an expression of 1 to %d bytes as its value", maxExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err == nil {
		_, err = regexp.Compile(text)
	}
	if err != nil {
		return fmt.Errorf("the expression is broken: %s (RE2 syntax, without look-around and back-references)",
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if effect == Allow && (!anchored(parsed, syntax.OpBeginText, first) || !anchored(parsed, syntax.OpEndText, last)) {
		return fmt.Errorf("in an allow rule the expression must begin with ^ and end with $, or it would allow every text that has it somewhere; for a choice write ^(?:a|b)$")
	}
	return nil
}

func first(list []*syntax.Regexp) *syntax.Regexp { return list[0] }
func last(list []*syntax.Regexp) *syntax.Regexp  { return list[len(list)-1] }

// anchored reports whether every way through an expression has the anchor at
// its end.
func anchored(re *syntax.Regexp, anchor syntax.Op, end func([]*syntax.Regexp) *syntax.Regexp) bool {
	switch re.Op {
	case anchor:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return anchored(end(re.Sub), anchor, end)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !anchored(s, anchor, end) })
	}
	return false
}

// anything is an argument whose type is not published.
var anything = &tool.Schema{}

// locate follows a path through a schema, as reach does through arguments, to
// the schema of a single value.
func locate(s *tool.Schema, path string) (*tool.Schema, error) {
	walked := ""
	for name := range strings.SplitSeq(path, ".") {
		s = element(s)
		switch {
		case name == "":
			return nil, fmt.Errorf("%q is no path of names separated by dots", short(path))
		case isOpen(s):
			return anything, nil
		case s.Values != nil:
			s = s.Values
		case s.Property(name) != nil:
			s = s.Property(name)
		case s.Open:
			return anything, nil
		default:
			return nil, noMember(s, walked, name)
		}
		walked = strings.TrimPrefix(walked+"."+name, ".")
	}
	return element(s), nil
}

// element is what a list is made of; any other schema is itself.
func element(s *tool.Schema) *tool.Schema {
	for len(s.Types) == 1 && s.Types[0] == "array" {
		if s.Items == nil {
			return anything
		}
		s = s.Items
	}
	return s
}

// isOpen reports whether a value can be of any kind, or of kinds that differ in
// more than notation.
func isOpen(s *tool.Schema) bool {
	return len(s.Types) == 0 || len(s.Types) > 1 && (has(s, "array") || has(s, "object"))
}

func has(s *tool.Schema, kind string) bool { return slices.Contains(s.Types, kind) }

func noMember(s *tool.Schema, walked, name string) error {
	var names []string
	for _, p := range s.Properties {
		names = append(names, p.Name)
	}
	takes := strings.Join(names, ", ")
	switch {
	case walked != "" && !has(s, "object"):
		return fmt.Errorf("%s is a single value and has no %s in it", walked, short(name))
	case walked != "":
		return fmt.Errorf("%s has no %s; it has %s", walked, short(name), takes)
	case takes == "":
		return fmt.Errorf("there is no argument %s; the tool takes none", short(name))
	}
	return fmt.Errorf("there is no argument %s; the tool takes %s", short(name), takes)
}

// fits checks operator and value against the type of the argument.
func (c Condition) fits(leaf *tool.Schema) error {
	text, number := has(leaf, "string"), has(leaf, "integer") || has(leaf, "number")
	switch {
	case c.Op == Exists || isOpen(leaf):
		return nil
	case has(leaf, "object"):
		return fmt.Errorf("%s is an object, of which only exists can be asked; name one of its members", c.Arg)
	}
	value, _ := plain(c.Value)
	_, isNumber := value.(json.Number)
	switch c.Op {
	case Equals:
		return c.fitsScalar(leaf, value)
	case In:
		for _, choice := range value.([]any) {
			if err := c.fitsScalar(leaf, choice); err != nil {
				return err
			}
		}
		return nil
	case Contains, StartsWith, Match:
		if !text {
			return fmt.Errorf("%s is %s, and %s is for texts; use equals, in%s or exists", c.Arg, kindOf(leaf), c.Op, map[bool]string{true: ", lt, le, gt, ge"}[number])
		}
		return nil
	}
	switch {
	case text && number:
		return fmt.Errorf("%s is an identifier and compared as text, without an order; use equals or in", c.Arg)
	case text && isNumber:
		return fmt.Errorf("%s is a text; %s can only compare it as a time, so its value must be one, such as 2026-12-01T10:00:00Z", c.Arg, c.Op)
	case !text && !number:
		return fmt.Errorf("%s is %s and has no order; use equals", c.Arg, kindOf(leaf))
	case number && !isNumber:
		return fmt.Errorf("%s is %s; write the value as one, without quotes", c.Arg, kindOf(leaf))
	}
	return nil
}

func (c Condition) fitsScalar(leaf *tool.Schema, value any) error {
	switch value := value.(type) {
	case string:
		if !has(leaf, "string") {
			return fmt.Errorf("%s is %s; write the value as one, without quotes", c.Arg, kindOf(leaf))
		}
		if len(leaf.Enum) > 0 && !slices.Contains(leaf.Enum, value) {
			return fmt.Errorf("%s can only be one of %s", c.Arg, strings.Join(leaf.Enum, ", "))
		}
	case json.Number:
		n, _ := parseDecimal(string(value))
		switch {
		case has(leaf, "string"):
			return fmt.Errorf("%s is compared as text; write the value in quotes", c.Arg)
		case !has(leaf, "integer") && !has(leaf, "number"):
			return fmt.Errorf("%s is %s; a number can never equal it", c.Arg, kindOf(leaf))
		case !has(leaf, "number") && !n.whole():
			return fmt.Errorf("%s is a whole number; %s can never equal it", c.Arg, short(string(value)))
		}
	case bool:
		if !has(leaf, "boolean") {
			return fmt.Errorf("%s is %s; true or false can never equal it", c.Arg, kindOf(leaf))
		}
	}
	return nil
}

func kindOf(leaf *tool.Schema) string {
	switch {
	case has(leaf, "string"):
		return "a text"
	case has(leaf, "number"):
		return "a number"
	case has(leaf, "integer"):
		return "a whole number"
	}
	return "true or false"
}

// short cuts what an error quotes.
func short(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
