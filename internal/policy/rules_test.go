package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	toml "github.com/pelletier/go-toml/v2"

	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

type searchArgs struct {
	Model  string    `json:"model" doc:"m"`
	Limit  int       `json:"limit,omitempty" doc:"l" max:"10000"`
	Ratio  float64   `json:"ratio,omitempty" doc:"r"`
	Domain tool.List `json:"domain,omitempty" doc:"d"`
	Dry    bool      `json:"dry,omitempty" doc:"d"`
}

type createArgs struct {
	Model  string           `json:"model" doc:"m"`
	Values tool.Object      `json:"values" doc:"v"`
	Lines  []line           `json:"lines,omitempty" doc:"l"`
	Counts map[string]int64 `json:"counts,omitempty" doc:"c"`
}

type line struct {
	Price float64 `json:"price" doc:"p"`
	Name  string  `json:"name,omitempty" doc:"n"`
}

type mailArgs struct {
	To   []string `json:"to" doc:"t"`
	Text string   `json:"text,omitempty" doc:"t"`
	Chat tool.ID  `json:"chat,omitempty" doc:"c"`
}

type memoryArgs struct {
	Query  string `json:"query" doc:"q"`
	Filter filter `json:"filter,omitzero" doc:"f"`
}

type filter struct {
	Since time.Time `json:"since,omitzero" doc:"s"`
	Box   string    `json:"box,omitempty" doc:"b"`
}

type fetchArgs struct {
	URL    string `json:"url" doc:"u"`
	Method string `json:"method,omitempty" doc:"m" enum:"GET,POST"`
}

type noArgs struct{}

var schemas = map[string]*tool.Schema{
	"odoo_search":   tool.SchemaOf[searchArgs](),
	"odoo_create":   tool.SchemaOf[createArgs](),
	"odoo_status":   tool.SchemaOf[noArgs](),
	"send_mail":     tool.SchemaOf[mailArgs](),
	"memory_search": tool.SchemaOf[memoryArgs](),
	"web_fetch":     tool.SchemaOf[fetchArgs](),
}

func catalogue() iter.Seq2[string, *tool.Schema] {
	return func(yield func(string, *tool.Schema) bool) {
		for name, s := range schemas {
			if !yield(name, s) {
				return
			}
		}
	}
}

// rules reads rules in TOML's short form: one [[policy]] after another.
func rules(t *testing.T, text string) []policy.Rule {
	t.Helper()
	var file struct {
		Policy []policy.Rule `toml:"policy"`
	}
	dec := toml.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return file.Policy
}

func one(effect, tool, when string) string {
	return fmt.Sprintf("[[policy]]\ntool = %q\neffect = %q\nwhen = [%s]\n", tool, effect, when)
}

func normal(t *testing.T, name, arguments string) []byte {
	t.Helper()
	b, err := schemas[name].Normalize([]byte(arguments))
	if err != nil {
		t.Fatalf("normalise %s %s: %v", name, arguments, err)
	}
	return b
}

// stored takes rules through their stored form, so that every test covers it.
func stored(t *testing.T, list []policy.Rule) []policy.Rule {
	t.Helper()
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := policy.ParseRules(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return parsed
}

func TestEvaluateRules(t *testing.T) {
	t.Parallel()
	const f, a, k = policy.Forbid, policy.Allow, policy.Ask
	tests := []struct {
		name, rules, tool, arguments string
		want                         policy.Effect
		index                        int
	}{
		{"no rules: the lists stand", "", "odoo_search", `{"model":"x"}`, "", -1},
		{"a rule for another tool", one("forbid", "send_mail", ""), "odoo_search", `{"model":"x"}`, "", -1},
		{"no condition", one("forbid", "odoo_*", ""), "odoo_search", `{"model":"x"}`, f, 0},
		{"star", one("ask", "*", ""), "odoo_status", `{}`, k, 0},
		{"forbid beats ask beats allow", one("allow", "*", "") + one("ask", "odoo_*", "") + one("forbid", "odoo_search", ""), "odoo_search", `{"model":"x"}`, f, 2},
		{"ask beats allow", one("allow", "*", "") + one("ask", "odoo_*", ""), "odoo_search", `{"model":"x"}`, k, 1},
		{"first of equals", one("ask", "*", "") + one("ask", "odoo_*", ""), "odoo_search", `{"model":"x"}`, k, 0},

		{"an allow rule that does not hold reserves the tool", one("allow", "odoo_search", `{arg="model",op="equals",value="crm.lead"}`), "odoo_search", `{"model":"res.users"}`, f, -1},
		{"and only that tool", one("allow", "odoo_search", `{arg="model",op="equals",value="crm.lead"}`), "send_mail", `{"to":["a"]}`, "", -1},
		{"an ask rule does not reserve", one("ask", "odoo_search", `{arg="limit",op="gt",value=100}`), "odoo_search", `{"model":"x","limit":5}`, "", -1},
		{"an allow rule of a tool without the argument", one("allow", "odoo_*", `{arg="model",op="equals",value="crm.lead"}`), "odoo_status", `{}`, f, -1},

		{"equals is case-sensitive", one("forbid", "odoo_search", `{arg="model",op="equals",value="res.users"}`), "odoo_search", `{"model":"Res.Users"}`, "", -1},
		{"equals folds composition", one("forbid", "odoo_search", `{arg="model",op="equals",value="café"}`), "odoo_search", `{"model":"cafe\u0301"}`, f, 0},
		{"equals keeps look-alikes apart", one("forbid", "odoo_search", `{arg="model",op="equals",value="res"}`), "odoo_search", `{"model":"rеs"}`, "", -1},
		{"an escape is no way around", one("forbid", "odoo_search", `{arg="model",op="equals",value="res.users"}`), "odoo_search", `{"model":"res\u002eusers"}`, f, 0},
		{"a number in a string is one", one("forbid", "odoo_search", `{arg="limit",op="equals",value=7}`), "odoo_search", `{"model":"x","limit":"7"}`, f, 0},
		{"boolean", one("forbid", "odoo_search", `{arg="dry",op="equals",value=false}`), "odoo_search", `{"model":"x","dry":false}`, f, 0},
		{"in", one("forbid", "odoo_search", `{arg="model",op="in",value=["a","b"]}`), "odoo_search", `{"model":"b"}`, f, 0},
		{"not in", one("forbid", "odoo_search", `{arg="model",op="in",value=["a","b"]}`), "odoo_search", `{"model":"c"}`, "", -1},
		{"contains", one("forbid", "odoo_search", `{arg="model",op="contains",value="user"}`), "odoo_search", `{"model":"res.users"}`, f, 0},
		{"starts_with", one("forbid", "odoo_search", `{arg="model",op="starts_with",value="ir."}`), "odoo_search", `{"model":"ir.rule"}`, f, 0},
		{"starts_with elsewhere", one("forbid", "odoo_search", `{arg="model",op="starts_with",value="ir."}`), "odoo_search", `{"model":"x.ir.rule"}`, "", -1},
		{"matches is not anchored", one("forbid", "odoo_search", `{arg="model",op="matches",value="us[e]r"}`), "odoo_search", `{"model":"res.users"}`, f, 0},

		{"lt", one("forbid", "odoo_search", `{arg="limit",op="lt",value=5}`), "odoo_search", `{"model":"x","limit":4}`, f, 0},
		{"lt at the edge", one("forbid", "odoo_search", `{arg="limit",op="lt",value=5}`), "odoo_search", `{"model":"x","limit":5}`, "", -1},
		{"le at the edge", one("forbid", "odoo_search", `{arg="limit",op="le",value=5}`), "odoo_search", `{"model":"x","limit":5}`, f, 0},
		{"gt at the edge", one("forbid", "odoo_search", `{arg="limit",op="gt",value=5}`), "odoo_search", `{"model":"x","limit":5}`, "", -1},
		{"ge at the edge", one("forbid", "odoo_search", `{arg="limit",op="ge",value=5}`), "odoo_search", `{"model":"x","limit":5}`, f, 0},
		{"fractions are exact", one("forbid", "odoo_search", `{arg="ratio",op="gt",value=0.1}`), "odoo_search", `{"model":"x","ratio":0.10000000000000000000001}`, f, 0},
		{"big numbers are exact", one("forbid", "odoo_create", `{arg="counts.a",op="equals",value=9007199254740993}`), "odoo_create", `{"model":"x","values":{},"counts":{"a":9007199254740992}}`, "", -1},
		{"big numbers are equal", one("forbid", "odoo_create", `{arg="counts.a",op="equals",value=9007199254740993}`), "odoo_create", `{"model":"x","values":{},"counts":{"a":9007199254740993}}`, f, 0},
		{"another notation of the number", one("forbid", "odoo_search", `{arg="ratio",op="equals",value=10}`), "odoo_search", `{"model":"x","ratio":1.0e1}`, f, 0},
		{"a number that is not expanded", one("forbid", "odoo_create", `{arg="values.n",op="gt",value=5}`), "odoo_create", `{"model":"x","values":{"n":1e299}}`, f, 0},

		{"time before", one("forbid", "memory_search", `{arg="filter.since",op="lt",value=2025-01-01T00:00:00Z}`), "memory_search", `{"query":"x","filter":{"since":"2024-12-31T23:59:59Z"}}`, f, 0},
		{"time in another zone", one("forbid", "memory_search", `{arg="filter.since",op="lt",value=2025-01-01T00:00:00Z}`), "memory_search", `{"query":"x","filter":{"since":"2025-01-01T07:59:59+08:00"}}`, f, 0},
		{"time after", one("forbid", "memory_search", `{arg="filter.since",op="lt",value="2025-01-01T00:00:00Z"}`), "memory_search", `{"query":"x","filter":{"since":"2025-01-01T00:00:01Z"}}`, "", -1},
		{"no time at all", one("forbid", "memory_search", `{arg="filter.since",op="lt",value=2025-01-01T00:00:00Z}`), "memory_search", `{"query":"x","filter":{"since":"yesterday"}}`, f, 0},

		{"exists", one("forbid", "odoo_search", `{arg="limit",op="exists"}`), "odoo_search", `{"model":"x","limit":1}`, f, 0},
		{"exists of an absent one", one("forbid", "odoo_search", `{arg="limit",op="exists",value=true}`), "odoo_search", `{"model":"x"}`, "", -1},
		{"exists of a null", one("forbid", "odoo_search", `{arg="limit",op="exists"}`), "odoo_search", `{"model":"x","limit":null}`, "", -1},
		{"exists of a null in an open object", one("forbid", "odoo_create", `{arg="values.password",op="exists"}`), "odoo_create", `{"model":"x","values":{"password":null}}`, f, 0},
		{"exists false", one("forbid", "memory_search", `{arg="filter.box",op="exists",value=false}`), "memory_search", `{"query":"x"}`, f, 0},
		{"exists of an empty list", one("forbid", "odoo_search", `{arg="domain",op="exists"}`), "odoo_search", `{"model":"x","domain":[]}`, f, 0},
		{"absent passes no comparison", one("forbid", "odoo_search", `{arg="limit",op="lt",value=5}`), "odoo_search", `{"model":"x"}`, "", -1},

		{"any element forbids", one("forbid", "send_mail", `{arg="to",op="equals",value="evil"}`), "send_mail", `{"to":["good","evil"]}`, f, 0},
		{"every element must be allowed", one("allow", "send_mail", `{arg="to",op="in",value=["good","fine"]}`), "send_mail", `{"to":["good","evil"]}`, f, -1},
		{"every element is allowed", one("allow", "send_mail", `{arg="to",op="in",value=["good","fine"]}`), "send_mail", `{"to":["good","fine"]}`, a, 0},
		{"an empty list is not allowed", one("allow", "send_mail", `{arg="to",op="in",value=["good"]}`), "send_mail", `{"to":[]}`, f, -1},
		{"any element asks", one("ask", "odoo_create", `{arg="lines.price",op="gt",value=100}`), "odoo_create", `{"model":"x","values":{},"lines":[{"price":1},{"price":101}]}`, k, 0},
		{"one element without the member is not allowed", one("allow", "odoo_create", `{arg="lines.name",op="equals",value="a"}`), "odoo_create", `{"model":"x","values":{},"lines":[{"price":1,"name":"a"},{"price":2}]}`, f, -1},
		{"lists in lists", one("forbid", "odoo_search", `{arg="domain",op="equals",value="password"}`), "odoo_search", `{"model":"x","domain":["|",["id","=",1],["password","!=",false]]}`, f, 0},

		{"open object, the same in text", one("forbid", "odoo_create", `{arg="values.user_id",op="equals",value=2}`), "odoo_create", `{"model":"x","values":{"user_id":"2"}}`, f, 0},
		{"open object, text is not the number for an allow", one("allow", "odoo_create", `{arg="values.user_id",op="equals",value=2}`), "odoo_create", `{"model":"x","values":{"user_id":"2"}}`, f, -1},
		{"open object, another number in text", one("forbid", "odoo_create", `{arg="values.user_id",op="equals",value=2}`), "odoo_create", `{"model":"x","values":{"user_id":"3"}}`, "", -1},
		{"open object, order of a word", one("forbid", "odoo_create", `{arg="values.amount",op="gt",value=100}`), "odoo_create", `{"model":"x","values":{"amount":"many"}}`, f, 0},
		{"open object, order of a number in text", one("forbid", "odoo_create", `{arg="values.amount",op="gt",value=100}`), "odoo_create", `{"model":"x","values":{"amount":"7"}}`, "", -1},
		{"open object, false for true", one("forbid", "odoo_create", `{arg="values.active",op="equals",value=false}`), "odoo_create", `{"model":"x","values":{"active":"false"}}`, f, 0},
		{"identifiers are text", one("forbid", "send_mail", `{arg="chat",op="equals",value="-100"}`), "send_mail", `{"to":["a"],"chat":-100}`, f, 0},

		{"all conditions must hold", one("forbid", "odoo_search", `{arg="model",op="equals",value="a"},{arg="limit",op="gt",value=1}`), "odoo_search", `{"model":"a","limit":1}`, "", -1},
		{"case of the tool", one("forbid", "odoo_search", ""), "Odoo_search", `{}`, "", -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fromTOML := rules(t, tt.rules)
			if err := policy.CheckRules(fromTOML, catalogue()); err != nil {
				t.Fatalf("rule refused: %v", err)
			}
			arguments := []byte(tt.arguments)
			if schemas[tt.tool] != nil {
				arguments = normal(t, tt.tool, tt.arguments)
			}
			for _, list := range [][]policy.Rule{fromTOML, stored(t, fromTOML)} {
				effect, index := policy.EvaluateRules(list, tt.tool, arguments)
				if effect != tt.want || index != tt.index {
					t.Errorf("EvaluateRules(%s) = %q, %d, want %q, %d", arguments, effect, index, tt.want, tt.index)
				}
			}
		})
	}
}

// TestEvaluateRules_broken: what cannot be understood counts against the call
// (W-8: the predecessor dropped its rules instead).
func TestEvaluateRules_broken(t *testing.T) {
	t.Parallel()
	condition := func(op policy.Op, value any) []policy.Condition {
		return []policy.Condition{{Arg: "model", Op: op, Value: value}}
	}
	tests := []struct {
		name      string
		rule      policy.Rule
		arguments string
		want      policy.Effect
	}{
		{"unknown effect", policy.Rule{Tool: "*", Effect: "deny"}, `{}`, policy.Forbid},
		{"unknown operator forbids", policy.Rule{Tool: "*", Effect: policy.Forbid, When: condition("like", "x")}, `{"model":"y"}`, policy.Forbid},
		{"unknown operator asks", policy.Rule{Tool: "*", Effect: policy.Ask, When: condition("like", "x")}, `{"model":"y"}`, policy.Ask},
		{"unknown operator allows nothing", policy.Rule{Tool: "*", Effect: policy.Allow, When: condition("like", "x")}, `{"model":"x"}`, policy.Forbid},
		{"broken expression forbids", policy.Rule{Tool: "*", Effect: policy.Forbid, When: condition(policy.Match, "(")}, `{"model":"y"}`, policy.Forbid},
		{"broken expression allows nothing", policy.Rule{Tool: "*", Effect: policy.Allow, When: condition(policy.Match, "(")}, `{"model":"y"}`, policy.Forbid},
		{"value of a foreign type", policy.Rule{Tool: "*", Effect: policy.Allow, When: condition(policy.Equals, struct{}{})}, `{"model":"y"}`, policy.Forbid},
		{"no value", policy.Rule{Tool: "*", Effect: policy.Forbid, When: condition(policy.Equals, nil)}, `{"model":"y"}`, policy.Forbid},
		{"broken arguments forbid", policy.Rule{Tool: "*", Effect: policy.Forbid, When: condition(policy.Equals, "x")}, `{"model"`, policy.Forbid},
		{"broken arguments allow nothing", policy.Rule{Tool: "*", Effect: policy.Allow, When: condition(policy.Equals, "x")}, `[]`, policy.Forbid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, _ := policy.EvaluateRules([]policy.Rule{tt.rule}, "odoo_search", []byte(tt.arguments)); got != tt.want {
				t.Errorf("effect %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckRules(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, rules, want string }{
		{"unknown tool", one("forbid", "odoo_serch", ""), "rule 1: there is no tool odoo_serch"},
		{"unknown pattern", one("forbid", "*", "") + one("forbid", "mail_*", ""), "rule 2: there is no tool mail_*"},
		{"the predecessor's families are no tools", one("forbid", "fs_write", ""), "rule 1: there is no tool fs_write"},
		{"W-23 qualified name", one("forbid", "mcp__pawgate__odoo_search", ""), "rule 1: tool must be written without the client's prefix: odoo_search"},
		{"half a word", one("forbid", "odoo*", ""), `rule 1: tool must be a name, memory_* or *, not "odoo*"`},
		{"no tool", one("forbid", "", ""), "rule 1: tool is missing; name a tool, or several as memory_* or *"},
		{"unknown effect", one("deny", "*", ""), `rule 1: effect must be allow, ask or forbid, not "deny"`},
		{"unknown argument", one("forbid", "odoo_search", `{arg="modle",op="equals",value="x"}`), "rule 1: condition 1: odoo_search: there is no argument modle; the tool takes model, limit, ratio, domain, dry"},
		{"argument of a tool without any", one("forbid", "odoo_status", `{arg="x",op="exists"}`), "rule 1: condition 1: odoo_status: there is no argument x; the tool takes none"},
		{"argument that no tool of the pattern has", one("forbid", "odoo_*", `{arg="to",op="exists"}`), "rule 1: condition 1: no tool of odoo_* has an argument to"},
		{"unknown member", one("forbid", "memory_search", `{arg="filter.sinse",op="exists"}`), "rule 1: condition 1: memory_search: filter has no sinse; it has since, box"},
		{"member of a text", one("forbid", "memory_search", `{arg="query.x",op="exists"}`), "rule 1: condition 1: memory_search: query is a single value and has no x in it"},
		{"broken path", one("forbid", "memory_search", `{arg="filter..x",op="exists"}`), `rule 1: condition 1: memory_search: "filter..x" is no path of names separated by dots`},
		{"no argument", one("forbid", "memory_search", `{arg="",op="exists"}`), "rule 1: condition 1: arg is missing; name an argument, such as limit or filter.since"},
		{"unknown operator", one("forbid", "odoo_search", `{arg="model",op="like",value="x"}`), `rule 1: condition 1: op must be one of equals, in, contains, starts_with, matches, lt, le, gt, ge and exists, not "like"`},
		{"contains on a number", one("forbid", "odoo_search", `{arg="limit",op="contains",value="1"}`), "rule 1: condition 1: odoo_search: limit is a whole number, and contains is for texts; use equals, in, lt, le, gt, ge or exists"},
		{"text for a number", one("forbid", "odoo_search", `{arg="limit",op="equals",value="1"}`), "rule 1: condition 1: odoo_search: limit is a whole number; write the value as one, without quotes"},
		{"number for a text", one("forbid", "odoo_search", `{arg="model",op="equals",value=1}`), "rule 1: condition 1: odoo_search: model is compared as text; write the value in quotes"},
		{"number for an identifier", one("forbid", "send_mail", `{arg="chat",op="equals",value=1}`), "rule 1: condition 1: send_mail: chat is compared as text; write the value in quotes"},
		{"order of an identifier", one("forbid", "send_mail", `{arg="chat",op="lt",value=1}`), "rule 1: condition 1: send_mail: chat is an identifier and compared as text, without an order; use equals or in"},
		{"fraction for a whole number", one("forbid", "odoo_search", `{arg="limit",op="in",value=[1,1.5]}`), "rule 1: condition 1: odoo_search: limit is a whole number; 1.5 can never equal it"},
		{"order of a text", one("forbid", "odoo_search", `{arg="model",op="lt",value=5}`), "rule 1: condition 1: odoo_search: model is a text; lt can only compare it as a time, so its value must be one, such as 2026-12-01T10:00:00Z"},
		{"order of a boolean", one("forbid", "odoo_search", `{arg="dry",op="lt",value=5}`), "rule 1: condition 1: odoo_search: dry is true or false and has no order; use equals"},
		{"order with a word", one("forbid", "odoo_search", `{arg="limit",op="lt",value="five"}`), "rule 1: condition 1: lt needs a number, or a time such as 2026-12-01T10:00:00Z, as its value"},
		{"time for a number", one("forbid", "odoo_search", `{arg="limit",op="lt",value=2026-12-01T10:00:00Z}`), "rule 1: condition 1: odoo_search: limit is a whole number; write the value as one, without quotes"},
		{"not one of the words", one("forbid", "web_fetch", `{arg="method",op="equals",value="post"}`), "rule 1: condition 1: web_fetch: method can only be one of GET, POST"},
		{"object", one("forbid", "memory_search", `{arg="filter",op="equals",value="x"}`), "rule 1: condition 1: memory_search: filter is an object, of which only exists can be asked; name one of its members"},
		{"equals with a list", one("forbid", "odoo_search", `{arg="model",op="equals",value=["a"]}`), "rule 1: condition 1: equals needs a text, a number, true or false as its value; for several use in"},
		{"in without a list", one("forbid", "odoo_search", `{arg="model",op="in",value="a"}`), "rule 1: condition 1: in needs a list of 1 to 1000 texts or numbers as its value"},
		{"in with nothing", one("forbid", "odoo_search", `{arg="model",op="in",value=[]}`), "rule 1: condition 1: in needs a list of 1 to 1000 texts or numbers as its value"},
		{"contains nothing", one("forbid", "odoo_search", `{arg="model",op="contains",value=""}`), "rule 1: condition 1: contains needs a text as its value"},
		{"exists with a word", one("forbid", "odoo_search", `{arg="model",op="exists",value="yes"}`), "rule 1: condition 1: exists needs true or false as its value, or none"},
		{"broken expression", one("allow", "*", "") + one("forbid", "odoo_search", `{arg="model",op="equals",value="a"},{arg="model",op="matches",value="(a"}`), "rule 2: condition 2: the expression is broken: missing closing ): `(a` (RE2 syntax, without look-around and back-references)"},
		{"look-around", one("forbid", "odoo_search", `{arg="model",op="matches",value="(?!a)"}`), "rule 1: condition 1: the expression is broken: invalid or unsupported Perl syntax: `(?!` (RE2 syntax, without look-around and back-references)"},
		{"allow without anchors", one("allow", "odoo_search", `{arg="model",op="matches",value="^crm"}`), "rule 1: condition 1: in an allow rule the expression must begin with ^ and end with $"},
		{"allow with a loose branch", one("allow", "odoo_search", `{arg="model",op="matches",value="^a$|b"}`), "rule 1: condition 1: in an allow rule the expression must begin with ^ and end with $"},
		{"allow with anchors of lines", one("allow", "odoo_search", `{arg="model",op="matches",value="(?m)^a$"}`), "rule 1: condition 1: in an allow rule the expression must begin with ^ and end with $"},
		{"too many", strings.Repeat(one("ask", "*", ""), policy.MaxRules+1), "an agent can have 200 rules, not 201; join some with in or matches"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := policy.CheckRules(rules(t, tt.rules), catalogue())
			invalid, ok := fault.InvalidOf(err)
			if !ok || invalid.Parameter != "policy" || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n %v\nwant\n %s", err, tt.want)
			}
		})
	}
	for _, fine := range []string{
		one("allow", "odoo_search", `{arg="model",op="matches",value='^(?:crm|sale)\.[a-z]+$'}`),
		one("allow", "odoo_search", `{arg="model",op="matches",value='(^a$|\Ab\z)'}`),
		one("forbid", "odoo_search", `{arg="domain",op="contains",value="x"}`),
		one("forbid", "odoo_create", `{arg="values.partner.name",op="gt",value=1}`),
		one("forbid", "odoo_create", `{arg="lines",op="exists"}`),
		one("forbid", "*", `{arg="model",op="equals",value="x"}`),
	} {
		if err := policy.CheckRules(rules(t, fine), catalogue()); err != nil {
			t.Errorf("%v in\n%s", err, fine)
		}
	}
}

func TestParseRules(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"misspelt", `[{"tool":"*","effct":"forbid"}]`, "rule 1 effct: no such member; a rule has tool, effect and when, a condition arg, op and value"},
		{"misspelt in a condition", `[{"tool":"*","effect":"ask","when":[{"arg":"a","op":"exists"},{"arg":"a","operator":"in"}]}]`, "rule 1 condition 2 operator: no such member; a rule has tool, effect and when, a condition arg, op and value"},
		{"CVE-2026-27896 other case", `[{"Tool":"*","effect":"forbid"}]`, "rule 1 Tool: no such member; a rule has tool, effect and when, a condition arg, op and value"},
		{"twice", `[{"tool":"*","effect":"forbid","effect":"allow"}]`, "policy is not valid JSON, or has a member twice"},
		{"wrong type", `[{"tool":"*"},{"tool":5}]`, "rule 2 tool has the wrong type"},
		{"an object", `{"tool":"*"}`, "policy has the wrong type"},
		{"cut off", `[{"tool":"*"`, "policy is not valid JSON, or has a member twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.ParseRules([]byte(tt.text))
			if _, ok := fault.InvalidOf(err); !ok || err.Error() != tt.want {
				t.Errorf("error\n %v\nwant\n %s", err, tt.want)
			}
		})
	}
	for _, none := range []string{"null", "[]"} {
		if got, err := policy.ParseRules([]byte(none)); err != nil || len(got) != 0 {
			t.Errorf("ParseRules(%s) = %v, %v", none, got, err)
		}
	}
}

// TestRules_C37: every example of the documentation is run; one that does
// nothing fails here.
func TestRules_C37(t *testing.T) {
	t.Parallel()
	examples := documented(t)
	type call struct {
		tool, arguments string
		want            policy.Effect
	}
	calls := [][]call{
		{{"odoo_search", `{"model":"res.users"}`, policy.Forbid}, {"odoo_create", `{"model":"ir.rule","values":{}}`, policy.Forbid}, {"odoo_search", `{"model":"crm.lead"}`, ""}, {"odoo_status", `{}`, ""}},
		{{"odoo_search", `{"model":"x","limit":101}`, policy.Ask}, {"odoo_search", `{"model":"x","limit":100}`, ""}, {"odoo_search", `{"model":"x"}`, ""}},
		{{"send_mail", `{"to":["a@example.com","b@example.com"]}`, policy.Allow}, {"send_mail", `{"to":["a@example.com","b@evil.example"]}`, policy.Forbid}, {"send_mail", `{"to":["a@example.com\nb@evil.example"]}`, policy.Forbid}, {"web_fetch", `{"url":"x"}`, ""}},
		{{"memory_search", `{"query":"x","filter":{"since":"2024-06-01T00:00:00Z"}}`, policy.Forbid}, {"memory_search", `{"query":"x","filter":{"since":"2025-06-01T00:00:00Z"}}`, ""}, {"memory_search", `{"query":"x"}`, ""}},
		{{"memory_search", `{"query":"x"}`, policy.Forbid}, {"memory_search", `{"query":"x","filter":{"box":"b"}}`, ""}},
		{{"web_fetch", `{"url":"http://x","method":"POST"}`, policy.Forbid}, {"web_fetch", `{"url":"https://x","method":"POST"}`, ""}, {"web_fetch", `{"url":"http://x"}`, ""}},
		{{"send_mail", `{"to":["a"],"text":"the invoice"}`, policy.Ask}, {"send_mail", `{"to":["a"],"text":"hello"}`, ""}},
	}
	if len(examples) != len(calls) {
		t.Fatalf("%d examples are documented, %d are tested", len(examples), len(calls))
	}
	if err := policy.CheckRules(examples, catalogue()); err != nil {
		t.Fatal(err)
	}
	for i, example := range examples {
		for _, c := range calls[i] {
			if got, _ := policy.EvaluateRules([]policy.Rule{example}, c.tool, normal(t, c.tool, c.arguments)); got != c.want {
				t.Errorf("%s: %s %s is %q, want %q", example, c.tool, c.arguments, got, c.want)
			}
		}
	}
}

// documented are the rules in the doc comment of Rule.
func documented(t *testing.T) []policy.Rule {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && len(g.Specs) == 1 {
			if s, ok := g.Specs[0].(*ast.TypeSpec); ok && s.Name.Name == "Rule" {
				for line := range strings.Lines(g.Doc.Text()) {
					if code, ok := strings.CutPrefix(line, "\t"); ok {
						text.WriteString(strings.Replace(code, "capabilities.policy", "policy", 1))
					}
				}
			}
		}
	}
	return rules(t, text.String())
}

func TestRuleString(t *testing.T) {
	t.Parallel()
	got := rules(t, one("forbid", "odoo_*", `{arg="model",op="in",value=["a","b"]},{arg="limit",op="exists"}`))[0].String()
	if diff := cmp.Diff(`forbid odoo_* when model in ["a","b"] and limit exists`, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// anyRule makes a rule over a few tools and values, so that rules and calls
// meet often; some are broken.
func anyRule(r *rand.Rand) policy.Rule {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	rule := policy.Rule{Tool: pick("*", "odoo_*", "odoo_search", "send_mail"), Effect: policy.Effect(pick("allow", "ask", "forbid", "allow", "odd"))}
	for range r.IntN(3) {
		c := policy.Condition{Arg: pick("model", "limit", "domain", "to", "nothing"), Op: policy.Op(pick("equals", "in", "contains", "starts_with", "matches", "lt", "le", "gt", "ge", "exists", "odd"))}
		switch r.IntN(6) {
		case 0:
			c.Value = int64(r.IntN(4))
		case 1:
			c.Value = []any{"a", int64(1)}
		case 2:
			c.Value = r.IntN(2) == 0
		case 3:
		default:
			c.Value = pick("a", "b", "(", "2025-01-01T00:00:00Z")
		}
		rule.When = append(rule.When, c)
	}
	return rule
}

func anyCall(r *rand.Rand) (string, []byte) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	name := pick("odoo_search", "odoo_create", "send_mail", "web_fetch")
	return name, fmt.Appendf(nil, `{"model":%s,"limit":%s,"domain":%s,"to":["a",%s]}`, pick(`"a"`, `"b"`), pick("0", "1", "2.5"), pick("[]", `[1,"a"]`), pick(`"b"`, "null"))
}

// width orders what a call may do: nothing, ask, run.
func width(e policy.Effect) int {
	switch e {
	case policy.Forbid:
		return 0
	case policy.Ask:
		return 1
	}
	return 2
}

func TestEvaluateRules_properties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 20000 {
		list := make([]policy.Rule, r.IntN(6))
		for i := range list {
			list[i] = anyRule(r)
		}
		name, arguments := anyCall(r)
		effect, index := policy.EvaluateRules(list, name, arguments)

		if index >= 0 && list[index].Effect != effect && !(effect == policy.Forbid && list[index].Effect == "odd") {
			t.Fatalf("effect %q by rule %v", effect, list[index])
		}
		shuffled := slices.Clone(list)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other, _ := policy.EvaluateRules(shuffled, name, arguments); other != effect {
			t.Fatalf("order matters: %q and %q for %v", effect, other, list)
		}
		extra := anyRule(r)
		after, by := policy.EvaluateRules(append(slices.Clone(list), extra), name, arguments)
		if extra.Effect != policy.Allow && width(after) > width(effect) && !(effect == policy.Forbid && index < 0 && extra.Effect == policy.Ask) {
			t.Fatalf("adding %v widens %q to %q", extra, effect, after)
		}
		if extra.Effect == policy.Forbid && width(after) > width(effect) {
			t.Fatalf("adding a forbid widens %q to %q", effect, after)
		}
		if extra.Effect == policy.Allow && effect == policy.Forbid && index >= 0 && after != policy.Forbid {
			t.Fatalf("adding an allow touches a forbid: %q by %d", after, by)
		}
		if extra.Effect == policy.Allow && effect == policy.Ask && width(after) > width(effect) {
			t.Fatalf("adding an allow touches an ask: %q by %d", after, by)
		}
		if again, same := policy.EvaluateRules(list, name, arguments); again != effect || same != index {
			t.Fatal("not deterministic")
		}
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(`[{"tool":"*","effect":"forbid","when":[{"arg":"model","op":"equals","value":1e9}]}]`), []byte(`{"model":[1,{"a":null}]}`))
	f.Add([]byte(`[{"tool":"odoo_*","effect":"allow","when":[{"arg":"a.b","op":"matches","value":"^x$"},{"arg":"t","op":"lt","value":"2025-01-01T00:00:00Z"}]}]`), []byte(`{"a":{"b":"x"}}`))
	f.Fuzz(func(t *testing.T, text, arguments []byte) {
		list, err := policy.ParseRules(text)
		if err != nil {
			return
		}
		checked := policy.CheckRules(list, catalogue())
		effect, index := policy.EvaluateRules(list, "odoo_search", arguments)
		if index >= len(list) || index < 0 && effect != "" && effect != policy.Forbid {
			t.Fatalf("%q by %d of %d", effect, index, len(list))
		}
		if checked == nil && len(list) > 0 {
			again, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := policy.ParseRules(again)
			if err != nil {
				t.Fatalf("%v after a round trip of %s", err, text)
			}
			if diff := cmp.Diff(list, parsed); diff != "" {
				t.Fatalf("round trip (-want +got)\n%s", diff)
			}
		}
	})
}

// BenchmarkRules is what 50 rules cost a call, parsed and applied.
func BenchmarkRules(b *testing.B) {
	var list []policy.Rule
	for i := range 50 {
		list = append(list, policy.Rule{Tool: []string{"odoo_search", "send_mail", "odoo_*"}[i%3], Effect: policy.Forbid,
			When: []policy.Condition{{Arg: "model", Op: policy.Equals, Value: fmt.Sprint("m", i)}, {Arg: "limit", Op: policy.Greater, Value: int64(i)}}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	arguments := []byte(`{"model":"crm.lead","limit":10}`)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := policy.ParseRules(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("evaluate", func(b *testing.B) {
		for b.Loop() {
			if effect, _ := policy.EvaluateRules(list, "odoo_search", arguments); effect != "" {
				b.Fatal(effect)
			}
		}
	})
}
