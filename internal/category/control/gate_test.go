package control_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// gate is a database on which the gate itself is asked, as the router asks it.
type gate struct {
	t   *testing.T
	db  postgres.DB
	cat tool.Category
	n   int
}

func newGate(t *testing.T) *gate {
	t.Helper()
	db := postgrestest.New(t)
	return &gate{t: t, db: db, cat: setup(t, db)}
}

// verdict is what gate_reserve answers.
type verdict struct {
	Verdict    string
	ID         string
	Reason     string
	ApprovalID string `json:"approval_id"`
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// call puts one call of agent coder to a tool that asks for approval through
// the gate. definition stands for the tool as it was published.
func (g *gate) call(tool, definition, arguments string) verdict {
	g.t.Helper()
	g.n++
	id := "a" + hashOf(g.t.Name() + string(rune('a'+g.n)))[:9]
	request, err := json.Marshal(map[string]any{
		"agent_id": "coder", "credential_id": "k1", "request_id": id, "tool": tool, "definition": hashOf(definition),
		"arguments_hash": hashOf(arguments), "arguments": json.RawMessage(arguments), "shown": json.RawMessage(arguments),
		"deadline": noon, "limited": false, "because": "rule 1", "approval_id": id, "life": "900 seconds",
	})
	if err != nil {
		g.t.Fatal(err)
	}
	var raw []byte
	if err := g.db.QueryRow(g.t.Context(), `select gate_reserve($1::jsonb, '[]'::jsonb)`, string(request)).Scan(&raw); err != nil {
		g.t.Fatalf("gate_reserve: %v", err)
	}
	var v verdict
	if err := json.Unmarshal(raw, &v); err != nil {
		g.t.Fatal(err)
	}
	return v
}

// pending is a call that must wait, and gives the id of its approval.
func (g *gate) pending(tool, arguments string) string {
	g.t.Helper()
	v := g.call(tool, "v1", arguments)
	if v.Verdict != "pending" {
		g.t.Fatalf("%s %s: want it to wait, got %+v", tool, arguments, v)
	}
	return v.ID
}

// want checks the verdict of a call.
func (g *gate) want(tool, arguments, verdict string) {
	g.t.Helper()
	if v := g.call(tool, "v1", arguments); v.Verdict != verdict {
		g.t.Errorf("%s %s: got %+v, want %s", tool, arguments, v, verdict)
	}
}

func (g *gate) exec(sql string, args ...any) {
	g.t.Helper()
	if _, err := g.db.Exec(g.t.Context(), sql, args...); err != nil {
		g.t.Fatalf("%s: %v", sql, err)
	}
}

// decided is what tool_approve answers.
type decided struct {
	ApprovalID  string `json:"approval_id"`
	State       string
	Kind        string
	AgentID     string `json:"agent_id"`
	Tool        string
	Arguments   json.RawMessage
	Because     string
	TaskID      string `json:"task_id"`
	Reason      string
	DecidedBy   string `json:"decided_by"`
	Covers      json.RawMessage
	CoversUntil *string `json:"covers_until"`
	Changed     bool
	Note        string
}

func (g *gate) decide(args string) decided {
	g.t.Helper()
	return tooltest.OK[decided](g.t, g.cat, approver(), "tool_approve", args)
}

func approver() caller.Caller {
	return caller.Caller{Agent: "lead", Credential: "k7", Scopes: []string{"control:write", caller.ScopeApprove}}
}
