package control_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/control"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// door is the real router over this category and a shop whose orders are
// counted.
type door struct {
	*testing.T
	db     postgres.DB
	router *router.Router
	ran    atomic.Int64
}

// The keys of agent coder, of agent lead with the scope approve, of agent
// stranger with the scope operator.
const coderKey, leadKey, operatorKey = "paw_test_coder", "paw_test_lead", "paw_test_operator"

func openDoor(t *testing.T) *door {
	t.Helper()
	t.Parallel()
	d := &door{T: t, db: postgrestest.Clone(t)}
	setup(t, d.db)
	exec(t, d.db, `update agents set allowed_tools = '{*}'`)
	for _, key := range []struct{ agent, key, scopes string }{
		{"coder", coderKey, "{*}"}, {"lead", leadKey, "{control:write,control:read,approve}"}, {"stranger", operatorKey, "{*,operator}"},
	} {
		sum := sha256.Sum256([]byte(key.key))
		exec(t, d.db, `insert into api_keys (id, agent_id, hint, hash, scopes) values ($1, $2, '', $3, $4)`, "k-"+key.agent, key.agent, sum[:], key.scopes)
	}
	counting := func(context.Context, caller.Caller, someArgs) (nothing, error) {
		d.ran.Add(1)
		return nothing{}, nil
	}
	shop := tool.Category{Name: "shop", Tools: []tool.Tool{tool.Write("shop_order", "Order.", counting, tool.Secret("token"))}}
	loaded := func() (*catalog.Catalog, error) { return catalog.Of(shop, control.New(nil, time.Now)) }
	tools, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	own := control.With(d.db, time.Now, control.Options{Catalog: loaded})
	d.router = router.New(router.Config{Version: "test", Catalog: tools, DB: d.db, Now: time.Now, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Backends: map[string]router.Backend{"shop": router.InProcess{Table: tool.Assemble(shop)}, "control": router.InProcess{Table: tool.Assemble(own)}}})
	return d
}

// answer is what a client sees.
type answer struct {
	Error  *struct{ Message string }
	Result struct {
		Tools             []struct{ Name string }
		StructuredContent map[string]any
	}
}

func (d *door) post(key, method, params string) answer {
	d.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	req := httptest.NewRequestWithContext(d.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	d.router.ServeHTTP(w, req)
	var a answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		d.Fatalf("%s %s: HTTP %d: %s", method, params, w.Code, w.Body)
	}
	return a
}

// call gives the structured answer of a tool, or its JSON-RPC error.
func (d *door) call(key, name, arguments string) map[string]any {
	d.Helper()
	a := d.post(key, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	if a.Error != nil {
		return map[string]any{"error": a.Error.Message}
	}
	return a.Result.StructuredContent
}

// want checks one member of an answer.
func (d *door) want(got map[string]any, member string, want any) {
	d.Helper()
	if diff := cmp.Diff(want, got[member]); diff != "" {
		d.Fatalf("%s of %v (-want +got):\n%s", member, got, diff)
	}
}

// ready is the state that preflight gives for one call.
func (d *door) ready(arguments string) any {
	d.Helper()
	got := d.call(coderKey, "tool_preflight", `{"tools":["shop_order"],"arguments":{"shop_order":`+arguments+`}}`)
	list, _ := got["tools"].([]any)
	if len(list) != 1 {
		d.Fatalf("preflight: %v", got)
	}
	return list[0].(map[string]any)["state"]
}

// An approval, from the call that asks to the call that runs.
func TestDoor_approval(t *testing.T) {
	d := openDoor(t)
	exec(t, d.db, `update agents set approval_required_tools = '{shop_order}' where id = 'coder'`)
	const call = `{"model":"a4","limit":2,"token":"sentinel-secret"}`
	asked := d.call(coderKey, "shop_order", call)
	d.want(asked, "reason", "approval_required")
	id, _ := asked["approval_id"].(string)
	d.want(d.call(coderKey, "shop_order", call), "approval_id", id) // no second card
	if got := d.ready(call); got != "needs_approval" {
		t.Errorf("preflight says %v", got)
	}
	d.want(d.call(coderKey, "tool_approve", `{"approval_id":"`+id+`","decision":"approve"}`), "error", "unknown tool: tool_approve")

	shown := d.call(leadKey, "tool_approve", `{"approval_id":"`+id+`","decision":"show"}`)
	arguments, _ := json.Marshal(shown["arguments"])
	if strings.Contains(string(arguments), "sentinel") || !strings.Contains(string(arguments), `"model":"a4"`) {
		t.Errorf("H68: what the person sees: %s", arguments)
	}
	d.want(d.call(leadKey, "tool_approve", `{"approval_id":"`+id[:5]+`","decision":"approve"}`), "state", "approved") // C31
	if got := d.ready(call); got != "ready" {
		t.Errorf("preflight says %v", got)
	}
	d.want(d.call(coderKey, "shop_order", `{"model":"a5","limit":2}`), "reason", "approval_required")
	d.want(d.call(coderKey, "shop_order", call), "status", "ok")
	d.want(d.call(coderKey, "shop_order", call), "reason", "approval_required") // AUTH-15: one use
	if n := d.ran.Load(); n != 1 {
		t.Errorf("it ran %d times, want once", n)
	}
	d.want(d.call(leadKey, "tool_approve", `{"approval_id":"`+id+`","decision":"deny"}`), "state", "used")
	if n := count(t, d.db, `select count(*) from audit where tool = 'tool_approve' and kind = 'outcome' and agent_id = 'lead' and credential_id = 'k-lead'`); n != 3 {
		t.Errorf("AUTH-24: %d of 3 uses of tool_approve are on record", n)
	}
	if n := count(t, d.db, `select count(*) from audit where arguments::text like '%sentinel%'`) + count(t, d.db, `select count(*) from approvals where arguments::text like '%sentinel%'`); n != 0 {
		t.Errorf("H68: the secret is in %d rows", n)
	}
}

// C32: this tool, this target, for a while; a secret cannot be a condition.
func TestDoor_C32_durable(t *testing.T) {
	d := openDoor(t)
	exec(t, d.db, `update agents set approval_required_tools = '{shop_order}' where id = 'coder'`)
	asked := d.call(coderKey, "shop_order", `{"model":"a4","to":["u1"],"token":"t"}`)
	id, _ := asked["approval_id"].(string)
	d.want(d.call(operatorKey, "tool_approve", `{"approval_id":"`+id+`","decision":"approve","for_minutes":60,"same":["token"]}`), "error",
		"token is secret and not kept, so it cannot be compared")
	d.want(d.call(operatorKey, "tool_approve", `{"approval_id":"`+id+`","decision":"approve","for_minutes":60,"same":["to"]}`), "state", "approved")
	for _, model := range []string{"a4", "a5", "a6"} {
		d.want(d.call(coderKey, "shop_order", `{"model":"`+model+`","to":["u1"]}`), "status", "ok")
	}
	d.want(d.call(coderKey, "shop_order", `{"model":"a4","to":["u1","u2"]}`), "reason", "approval_required")
}

func TestDoor_grant(t *testing.T) {
	d := openDoor(t)
	exec(t, d.db, `update agents set scoped_tools = '{shop_*}' where id = 'coder'`)
	d.want(d.call(coderKey, "shop_order", `{}`), "reason", "grant_required")
	asked := d.call(coderKey, "capability_request", `{"tool":"shop_order","reason":"out of paper"}`)
	d.want(asked, "state", "pending")
	d.want(d.call(coderKey, "shop_order", `{}`), "reason", "grant_required")
	id, _ := asked["approval_id"].(string)
	d.want(d.call(operatorKey, "tool_approve", `{"approval_id":"`+id+`","decision":"approve"}`), "state", "approved")
	d.want(d.call(coderKey, "shop_order", `{}`), "status", "ok")
	exec(t, d.db, `update approvals set state = 'revoked'`)
	d.want(d.call(coderKey, "shop_order", `{}`), "reason", "grant_required")
}

// A stop while somebody decides: what was pending can be approved no more,
// and the call asks anew afterwards.
func TestDoor_stop(t *testing.T) {
	d := openDoor(t)
	exec(t, d.db, `update agents set approval_required_tools = '{shop_order}' where id = 'coder'`)
	asked := d.call(coderKey, "shop_order", `{}`)
	id, _ := asked["approval_id"].(string)
	d.want(d.call(operatorKey, "emergency_stop", `{"action":"stop","agent_id":"coder"}`), "approvals_cancelled", 1.0)
	d.want(d.call(coderKey, "shop_order", `{}`), "reason", "stopped")
	d.want(d.call(leadKey, "tool_approve", `{"approval_id":"`+id+`","decision":"approve"}`), "state", "cancelled")
	d.want(d.call(operatorKey, "emergency_stop", `{"action":"resume","agent_id":"coder"}`), "state", "running")
	if again := d.call(coderKey, "shop_order", `{}`); again["reason"] != "approval_required" || again["approval_id"] == id {
		t.Errorf("after the stop: %v", again)
	}
}

// tool_approve is listed for those who may use it: approvers, and operators,
// who may whatever an approver may.
func TestDoor_who_sees_tool_approve(t *testing.T) {
	d := openDoor(t)
	for key, want := range map[string]bool{coderKey: false, leadKey: true, operatorKey: true} {
		listed := false
		for _, tool := range d.post(key, "tools/list", `{}`).Result.Tools {
			listed = listed || tool.Name == "tool_approve"
		}
		if listed != want {
			t.Errorf("%s: listed %t, want %t", key, listed, want)
		}
	}
}
