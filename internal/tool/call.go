package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
)

// Version is the version of the wire form between router and category.
const Version = 1

// MaxResult is the largest encoded result, in bytes. Lambda carries 6 MB both
// ways, and the router wraps the result once more.
const MaxResult = 4 << 20

// Call is what the router sends to a category, whatever carries it.
type Call struct {
	V         int             `json:"v"`
	RequestID string          `json:"request_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Deadline  time.Time       `json:"deadline"`
	Assertion string          `json:"assertion,omitempty"`
	// Caller is an unsigned statement, accepted only under SAM local and the
	// emulator tests; see package serve.
	Caller *caller.Caller `json:"caller,omitempty"`
}

// Outcome is what a category answers: exactly one of its members.
type Outcome struct {
	OK      json.RawMessage        `json:"ok,omitempty"`
	Fault   *fault.Fault           `json:"fault,omitempty"`
	Invalid *fault.InvalidArgument `json:"invalid,omitempty"`
}

// MediaLines is the media type of an answer that tells progress on the way: a
// line of JSON for each report, then one with the outcome. It is sent to whoever
// accepts it, and only when there is something to tell.
const MediaLines = "application/x-ndjson"

// Line is one line of such an answer: a report, or the outcome.
type Line struct {
	Progress *Progress `json:"progress,omitempty"`
	Outcome
}

// Failed is the outcome of an error: a fault or a broken argument as it is,
// anything else logged and hidden behind the request id.
func Failed(err error, requestID string) Outcome {
	if f, ok := fault.Of(err); ok {
		return Outcome{Fault: f}
	}
	if e, ok := fault.InvalidOf(err); ok {
		return Outcome{Invalid: e}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Outcome{Fault: fault.New(fault.DeadlineExceeded, "the call did not finish in time; try again with less to do")}
	case errors.Is(err, context.Canceled):
		return Outcome{Fault: fault.New(fault.Cancelled, "the call was cancelled")}
	}
	slog.Error("tool failed", "request_id", requestID, "error", err)
	return Outcome{Fault: fault.New(fault.Internal, "internal error; the operator finds it in the log under request %s", requestID)}
}

// Category is the tools that share a function.
type Category struct {
	Name  string
	Tools []Tool
	// Close frees what Open opened; nil when there is nothing.
	Close func()
}

// Table is an assembled category, ready to be called.
type Table struct {
	Name  string
	tools map[string]Tool
	Close func()
}

// Assemble indexes a category. It panics on a tool declared twice.
func Assemble(c Category) Table {
	t := Table{Name: c.Name, tools: make(map[string]Tool, len(c.Tools)), Close: c.Close}
	if t.Close == nil {
		t.Close = func() {}
	}
	for _, tool := range c.Tools {
		if _, twice := t.tools[tool.Name]; twice {
			panic(fmt.Sprintf("category %s: tool %s is declared twice", c.Name, tool.Name))
		}
		t.tools[tool.Name] = tool
	}
	return t
}

// Call runs one tool. Arguments are normalised here as well as in the router,
// so that a category is safe whoever calls it. It never panics: a handler's
// panic is logged and answered as an internal error.
func (t Table) Call(ctx context.Context, who caller.Caller, name string, arguments []byte) (out Outcome) {
	tool, ok := t.tools[name]
	if !ok {
		return Outcome{Fault: fault.New(fault.NotFound, "category %s has no tool %s", t.Name, name)}
	}
	defer func() {
		if p := recover(); p != nil {
			out = Failed(fmt.Errorf("panic in %s: %v\n%s", name, p, debug.Stack()), who.RequestID)
		}
	}()
	normal, err := tool.Args.Normalize(arguments)
	if err != nil {
		return Failed(err, who.RequestID)
	}
	result, err := tool.run(ctx, who, normal)
	if err != nil {
		return Failed(fmt.Errorf("%s: %w", name, err), who.RequestID)
	}
	if len(result) > MaxResult {
		return Outcome{Fault: fault.New(fault.TooLarge,
			"%s ran, but its result has %d bytes and at most %d can be returned; ask for less", name, len(result), MaxResult)}
	}
	return Outcome{OK: result}
}

func encodeResult(result any) (json.RawMessage, error) {
	// Version 2 semantics: an empty list is [], never null. Text from outside
	// may hold broken UTF-8; it is replaced, because the answer must be JSON.
	b, err := jsonv2.Marshal(result, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return b, nil
}

// decodeError words a decoding failure that the schema could not foresee,
// such as a malformed time.
func decodeError(err error) error {
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) {
		path := pointerPath(semantic.JSONPointer)
		return fault.Invalid(path, "%s is not a valid %s", path, kindOf(semantic))
	}
	return fault.Invalid("arguments", "the arguments could not be read")
}
