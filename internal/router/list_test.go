package router

import (
	"context"
	"fmt"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/policy"
	"pawgate/internal/tool"
)

type listArgs struct {
	Query string   `json:"query" doc:"What to look for, in plain words"`
	Tags  []string `json:"tags,omitempty" doc:"Only memories with these"`
	Limit int      `json:"limit,omitempty" doc:"Most memories to return; 10 if left out" min:"1" max:"100"`
}

// fullRouter lists as many tools as the product will have.
func fullRouter(t testing.TB) (*Router, policy.Snapshot) {
	t.Helper()
	tools := make([]tool.Tool, 208)
	for i := range tools {
		tools[i] = tool.Read(fmt.Sprintf("memory_search_%d", i), "Find this agent's memories, best first.",
			func(context.Context, caller.Caller, listArgs) (listArgs, error) { return listArgs{}, nil })
	}
	loaded, err := catalog.Of(tool.Category{Name: "memory", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return &Router{Config: Config{Catalog: loaded}}, policy.Snapshot{
		Agent:  policy.Agent{ID: "a", State: "active", Allowed: []string{"memory_*", "web_*"}, Denied: []string{"odoo_*", "desktop_*"}},
		Caller: caller.Caller{Agent: "a", Scopes: []string{"*"}},
	}
}

// TestF55ListIsNotRebuilt: a list is joined from text that was encoded once:
// schemas built anew would cost hundreds of allocations each.
func TestF55ListIsNotRebuilt(t *testing.T) {
	r, s := fullRouter(t)
	if n := len(r.listedTools(s)); n < 208*200 {
		t.Fatalf("the list has %d bytes", n)
	}
	if perTool := testing.AllocsPerRun(10, func() { r.listedTools(s) }) / 208; perTool > 3 {
		t.Errorf("%.1f allocations per tool", perTool)
	}
}

func BenchmarkList208(b *testing.B) {
	r, s := fullRouter(b)
	for b.Loop() {
		r.listedTools(s)
	}
}
