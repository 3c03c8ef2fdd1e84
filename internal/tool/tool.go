// Package tool says what a tool is: a name, a description, typed arguments, a
// handler, and how dangerous it is.
//
// A tool is declared by one row in its category's table. The argument struct
// is the schema, the checks and the decoding at once; the verb (Read, Write,
// Destroy) sets the hints that clients see. A mistake in a row panics when the
// table is assembled, with the tool's name, so that a bad tool cannot reach a
// test, still less a user.
//
// This package knows nothing of MCP, HTTP or Lambda, and does no I/O.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"pawgate/internal/caller"
)

// Class is the rate class of a tool: which of an agent's limits it draws on.
type Class string

// The rate classes.
const (
	ClassRead      Class = "read"
	ClassWrite     Class = "write"
	ClassSend      Class = "send"
	ClassExecute   Class = "execute"
	ClassExpensive Class = "expensive"
)

// Edition is the smallest edition of the product that has a tool.
type Edition string

// The editions, smallest first.
const (
	Community  Edition = "community"
	Pro        Edition = "pro"
	Enterprise Edition = "enterprise"
)

// Hints are MCP's tool annotations.
type Hints struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Published are the hints that say something: all four of a tool that changes
// anything, since their defaults differ between clients, and two of one that
// only reads, where the others mean nothing (MCP 2025-11-25, ToolAnnotations).
func (h Hints) Published() map[string]bool {
	if h.ReadOnly {
		return map[string]bool{"readOnlyHint": true, "openWorldHint": h.OpenWorld}
	}
	return map[string]bool{"readOnlyHint": false, "destructiveHint": h.Destructive, "idempotentHint": h.Idempotent, "openWorldHint": h.OpenWorld}
}

// Definition is everything about a tool but its handler: what the catalogue
// holds and the router works with.
type Definition struct {
	Name    string   `json:"name"`
	About   string   `json:"description"`
	Hints   Hints    `json:"annotations"`
	Class   Class    `json:"class"`
	Edition Edition  `json:"edition"`
	Scope   string   `json:"scope,omitempty"` // required besides the category's own, such as "operator"
	Exempt  bool     `json:"exempt,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // arguments that never reach a log or audit row
	Args    *Schema  `json:"inputSchema"`
}

// Action is what a credential's scope must allow in the category: read, write
// or execute.
func (d Definition) Action() string {
	switch {
	case d.Hints.ReadOnly:
		return "read"
	case d.Class == ClassExecute:
		return "execute"
	}
	return "write"
}

// Tool is a definition with its handler.
type Tool struct {
	Definition
	run func(ctx context.Context, who caller.Caller, arguments []byte) (json.RawMessage, error)
}

// Option adjusts a row of a table.
type Option func(*Tool)

// OpenWorld marks a tool that reaches systems outside this installation.
func OpenWorld(t *Tool) { t.Hints.OpenWorld = true }

// Idempotent marks a write that may be repeated without further effect.
func Idempotent(t *Tool) { t.Hints.Idempotent = true }

// Secret names arguments whose values never reach a log line or an audit row.
func Secret(arguments ...string) Option {
	return func(t *Tool) { t.Secrets = append(t.Secrets, arguments...) }
}

// In sets the edition that has the tool; without it every edition does.
func In(edition Edition) Option { return func(t *Tool) { t.Edition = edition } }

// Rate sets the rate class, where the verb's own (read or write) is wrong.
func Rate(class Class) Option { return func(t *Tool) { t.Class = class } }

// NeedsScope asks for a scope of the credential besides the category's own.
func NeedsScope(scope string) Option { return func(t *Tool) { t.Scope = scope } }

// PassesStop lets a tool run while an emergency stop covers its caller. Only
// the stop's own tool may have it.
func PassesStop(t *Tool) { t.Exempt = true }

// Read declares a tool that changes nothing.
func Read[A, R any](name, about string, run func(context.Context, caller.Caller, A) (R, error), options ...Option) Tool {
	return declare(name, about, Hints{ReadOnly: true, Idempotent: true}, ClassRead, run, options)
}

// Write declares a tool that adds or changes something.
func Write[A, R any](name, about string, run func(context.Context, caller.Caller, A) (R, error), options ...Option) Tool {
	return declare(name, about, Hints{}, ClassWrite, run, options)
}

// Destroy declares a tool that removes something or cannot be undone.
func Destroy[A, R any](name, about string, run func(context.Context, caller.Caller, A) (R, error), options ...Option) Tool {
	return declare(name, about, Hints{Destructive: true}, ClassWrite, run, options)
}

// validator is what an argument struct may add to its tags: checks over
// several fields. It returns a fault.Invalid.
type validator interface{ Validate() error }

func declare[A, R any](name, about string, hints Hints, class Class,
	run func(context.Context, caller.Caller, A) (R, error), options []Option) Tool {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("tool %s: %v", name, p))
		}
	}()
	t := Tool{Definition: Definition{Name: name, About: about, Hints: hints, Class: class, Edition: Community, Args: SchemaOf[A]()}}
	for _, option := range options {
		option(&t)
	}
	checkDefinition(t.Definition)
	checkResult(reflect.TypeFor[R]())
	t.run = func(ctx context.Context, who caller.Caller, arguments []byte) (json.RawMessage, error) {
		var a A
		if err := jsonv2.Unmarshal(arguments, &a); err != nil {
			return nil, decodeError(err)
		}
		if v, ok := any(a).(validator); ok {
			if err := v.Validate(); err != nil {
				return nil, err
			}
		}
		result, err := run(ctx, who, a)
		if err != nil {
			return nil, err
		}
		return encodeResult(result)
	}
	return t
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// maxName leaves room for "mcp__pawgate__" within the 64 characters that
// model providers allow a tool's name.
const maxName = 64 - len("mcp__pawgate__")

// maxAbout is where Claude Code cuts a description, in bytes.
const maxAbout = 2048

func checkDefinition(d Definition) {
	switch {
	case !toolName.MatchString(d.Name) || len(d.Name) > maxName:
		panic(fmt.Sprintf("the name must be snake_case and at most %d characters", maxName))
	case strings.TrimSpace(d.About) == "":
		panic("the description is missing")
	case len(d.About) > maxAbout:
		panic(fmt.Sprintf("the description is longer than %d bytes", maxAbout))
	case d.Args == nil || !d.Args.is("object"):
		panic("the arguments have no schema")
	}
	for _, secret := range d.Secrets {
		if d.Args.Property(secret) == nil {
			panic(fmt.Sprintf("secret argument %s does not exist", secret))
		}
	}
}

// checkResult keeps the root of every answer an object without a status of
// its own: the answer adds that member.
func checkResult(t reflect.Type) {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("the result must be a struct, not %s", t))
	}
	for f := range fields(t) {
		if name, _ := jsonName(f); name == "status" {
			panic("a result cannot have a field status; use state")
		}
	}
}
