// Package tooltest calls a category's tools in tests, the way the router does:
// by name, with JSON arguments, through the real checks and encoding.
package tooltest

import (
	"encoding/json"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Who is an ordinary caller for tests: the agent named, every tool scope, no
// operator rights.
func Who(agent string) caller.Caller {
	return caller.Caller{Agent: agent, Credential: "test", Scopes: []string{caller.ScopeAll}, RequestID: "test-request"}
}

// Call runs a tool. args is JSON text or any value that encodes to it.
func Call(t testing.TB, c tool.Category, who caller.Caller, name string, args any) tool.Outcome {
	t.Helper()
	encoded, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatalf("encode arguments: %v", err)
		}
		encoded = string(b)
	}
	return tool.Assemble(c).Call(t.Context(), who, name, []byte(encoded))
}

// OK runs a tool that must succeed and decodes its result into R.
func OK[R any](t testing.TB, c tool.Category, who caller.Caller, name string, args any) R {
	t.Helper()
	out := Call(t, c, who, name, args)
	if out.OK == nil {
		t.Fatalf("%s: want a result, got %s", name, describe(out))
	}
	var r R
	if err := json.Unmarshal(out.OK, &r); err != nil {
		t.Fatalf("%s: decode result %s: %v", name, out.OK, err)
	}
	return r
}

// Fault runs a tool that must answer with a fault of the given reason.
func Fault(t testing.TB, c tool.Category, who caller.Caller, name string, args any, want fault.Reason) *fault.Fault {
	t.Helper()
	out := Call(t, c, who, name, args)
	if out.Fault == nil || out.Fault.Reason != want {
		t.Fatalf("%s: want a fault %s, got %s", name, want, describe(out))
	}
	return out.Fault
}

// Invalid runs a tool that must refuse the named parameter.
func Invalid(t testing.TB, c tool.Category, who caller.Caller, name string, args any, parameter string) *fault.InvalidArgument {
	t.Helper()
	out := Call(t, c, who, name, args)
	if out.Invalid == nil || out.Invalid.Parameter != parameter {
		t.Fatalf("%s: want parameter %s refused, got %s", name, parameter, describe(out))
	}
	return out.Invalid
}

func describe(out tool.Outcome) string {
	b, _ := json.Marshal(out)
	return string(b)
}
