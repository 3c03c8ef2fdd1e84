package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type (
	none   struct{}
	listed struct {
		Items []string          `json:"items"`
		Names map[string]string `json:"names"`
	}
	timed struct {
		At time.Time `json:"at" doc:"When"`
	}
	checked struct {
		From int `json:"from" doc:"First"`
		To   int `json:"to" doc:"Last"`
	}
)

func (c checked) Validate() error {
	if c.From > c.To {
		return fault.Invalid("from", "from must not be above to")
	}
	return nil
}

func returns[A, R any](r R) func(context.Context, caller.Caller, A) (R, error) {
	return func(context.Context, caller.Caller, A) (R, error) { return r, nil }
}

// TestAssembly: a bad row panics with the tool's name and the reason.
func TestAssembly(t *testing.T) {
	t.Parallel()
	type undocumented struct {
		X int `json:"x"`
	}
	type unnamed struct {
		X int `doc:"X"`
	}
	type anything struct {
		X any `json:"x" doc:"X"`
	}
	type withStatus struct {
		Status string `json:"status"`
	}
	for _, c := range []struct {
		want    string
		declare func()
	}{
		{"snake_case", func() { tool.Read("Bad-Name", "About.", returns[none](none{})) }},
		{"snake_case", func() { tool.Read(strings.Repeat("x", 51), "About.", returns[none](none{})) }},
		{"description is missing", func() { tool.Read("probe", " ", returns[none](none{})) }},
		{"longer than", func() { tool.Read("probe", strings.Repeat("x", 2049), returns[none](none{})) }},
		{"doc tag is missing", func() { tool.Read("probe", "About.", returns[undocumented](none{})) }},
		{"json tag is missing", func() { tool.Read("probe", "About.", returns[unnamed](none{})) }},
		{"cannot be a interface", func() { tool.Read("probe", "About.", returns[anything](none{})) }},
		{"must be a struct", func() { tool.Read("probe", "About.", returns[string](none{})) }},
		{"result must be a struct", func() { tool.Read("probe", "About.", returns[none]([]string{})) }},
		{"use state", func() { tool.Read("probe", "About.", returns[none](withStatus{})) }},
		{"does not exist", func() { tool.Read("probe", "About.", returns[none](none{}), tool.Secret("token")) }},
		{"declared twice", func() {
			one := tool.Read("probe", "About.", returns[none](none{}))
			tool.Assemble(tool.Category{Name: "c", Tools: []tool.Tool{one, one}})
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, c.want) {
					t.Errorf("panic %q, want %q in it", p, c.want)
				}
			}()
			c.declare()
		})
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool   tool.Tool
		want   tool.Hints
		action string
	}{
		"read":    {tool.Read("probe", "About.", returns[none](none{}), tool.OpenWorld), tool.Hints{ReadOnly: true, Idempotent: true, OpenWorld: true}, "read"},
		"write":   {tool.Write("probe", "About.", returns[none](none{}), tool.Idempotent), tool.Hints{Idempotent: true}, "write"},
		"destroy": {tool.Destroy("probe", "About.", returns[none](none{})), tool.Hints{Destructive: true}, "write"},
		"execute": {tool.Write("probe", "About.", returns[none](none{}), tool.Rate(tool.ClassExecute)), tool.Hints{}, "execute"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.tool.Hints != c.want || c.tool.Action() != c.action {
				t.Errorf("hints %+v, action %s", c.tool.Hints, c.tool.Action())
			}
		})
	}
}

func category(tools ...tool.Tool) tool.Category { return tool.Category{Name: "test", Tools: tools} }

func TestCall(t *testing.T) {
	t.Parallel()
	who := tooltest.Who("alice")
	t.Run("empty is [] and {}", func(t *testing.T) {
		out := tooltest.Call(t, category(tool.Read("probe", "About.", returns[none](listed{}))), who, "probe", `{}`)
		if string(out.OK) != `{"items":[],"names":{}}` {
			t.Errorf("got %s", out.OK)
		}
	})
	t.Run("MCP-18 broken text from outside stays JSON", func(t *testing.T) {
		out := tooltest.Call(t, category(tool.Read("probe", "About.", returns[none](listed{Items: []string{"a\xffb\xed\xa0\xbd"}}))), who, "probe", `{}`)
		if !strings.Contains(string(out.OK), "a\ufffdb") {
			t.Errorf("got %s", out.OK)
		}
	})
	t.Run("a malformed time names its argument", func(t *testing.T) {
		e := tooltest.Invalid(t, category(tool.Read("probe", "About.", returns[timed](none{}))), who, "probe", `{"at":"tomorrow"}`, "at")
		if !strings.Contains(e.Message, "2026-12-01T10:00:00Z") {
			t.Errorf("got %q", e.Message)
		}
	})
	t.Run("Validate speaks last", func(t *testing.T) {
		tooltest.Invalid(t, category(tool.Read("probe", "About.", returns[checked](none{}))), who, "probe", `{"from":2,"to":1}`, "from")
	})
	t.Run("a tool of another category", func(t *testing.T) {
		tooltest.Fault(t, category(), who, "probe", `{}`, fault.NotFound)
	})
}
