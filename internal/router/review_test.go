package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// TestStrangersBodies: without a key nobody makes the router read or parse a
// large body, and a body of any size has a bounded number of parts.
func TestStrangersBodies(t *testing.T) {
	g := newGate(t)
	var names strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&names, `"%d":0,`, i)
	}
	large := callBody("probe_echo", `{`+names.String()+`"text":"x"}`)
	read := &watchedBody{Reader: strings.NewReader(large)}
	for _, length := range []int64{int64(len(large)), -1} {
		r := g.post("", as("paw_test_stranger"), func(r *http.Request) { r.Body, r.ContentLength = read, length })
		if r.Status != 401 || r.Header.Get("Connection") != "close" || read.n.Load() > 0 {
			t.Errorf("HTTP %d, %d bytes read", r.Status, read.n.Load())
		}
	}
	g.post(large).wantError(t, 400, -32700, "more than 100000 parts")
}

type watchedBody struct {
	*strings.Reader
	n atomic.Int64
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.n.Add(int64(n))
	return n, err
}

func (*watchedBody) Close() error { return nil }

// odd is a backend whose answers the database cannot hold.
type odd struct{}

func (odd) Call(context.Context, caller.Caller, *catalog.Entry, []byte) tool.Outcome {
	return tool.Outcome{OK: json.RawMessage(`{"n":1e-999999,"s":"a\u0000b"}`)}
}

// TestOneRecordSpoilsNoOther: what the database refuses in one caller's record
// does not cost another's.
func TestOneRecordSpoilsNoOther(t *testing.T) {
	g := newGate(t)
	g.unlimited()
	g.exec(`update agents set denied_tools = '{}'`)
	strange := router.New(func() router.Config {
		c := g.router.Config
		c.Backends = map[string]router.Backend{"probe": odd{}}
		return c
	}())
	var group sync.WaitGroup
	var failed atomic.Int64
	for i := range 30 {
		group.Go(func() {
			if r := g.through(g.router, write("a", fmt.Sprint("k", i))); r.Error != nil || r.Result.IsError {
				failed.Add(1)
			}
		})
		group.Go(func() { g.through(strange, write("b", fmt.Sprint("s", i))) })
	}
	group.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d innocent writes failed", failed.Load())
	}
	first := g.through(strange, write("c", "same")).Body
	if again := g.through(strange, write("c", "same")).Body; again != first {
		t.Errorf("the repetition differs:\n%s\n%s", first, again)
	}
}

// TestPaddingHidesNothing: an approver sees both ends of a long argument.
func TestPaddingHidesNothing(t *testing.T) {
	g := newGate(t)
	g.requireApproval()
	g.post(write("rm -rf / "+strings.Repeat(" ", 9000)+" # tidy up", "")).wantFault(t, "approval_required")
	var shown string
	if err := g.db.QueryRow(t.Context(), `select arguments->>'input' from approvals`).Scan(&shown); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown, "rm -rf /") || !strings.Contains(shown, "tidy up") || len(shown) > 2000 {
		t.Errorf("shown: %.300s", shown)
	}
}

// once is a backend that is away the first time.
type once struct {
	router.Backend
	called atomic.Int64
}

func (o *once) Call(ctx context.Context, who caller.Caller, e *catalog.Entry, arguments []byte) tool.Outcome {
	if o.called.Add(1) == 1 {
		return tool.Outcome{Fault: fault.New(fault.Unavailable, "nothing was done, try again")}
	}
	return o.Backend.Call(ctx, who, e, arguments)
}

// TestTryAgainIsPossible: a fault that says nothing was done uses up neither
// the key nor the approval.
func TestTryAgainIsPossible(t *testing.T) {
	g := newGate(t, func(c *router.Config) {
		c.Backends = map[string]router.Backend{"probe": &once{Backend: c.Backends["probe"]}}
	})
	g.requireApproval()
	id := g.post(write("a", "k")).wantFault(t, "approval_required")["approval_id"].(string)
	g.decide(id, "approved")
	g.post(write("a", "k")).wantFault(t, "unavailable")
	g.post(write("a", "k")).wantOK(t)
	g.post(write("a", "k")).wantOK(t)
	if n := g.probe.ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// TestFloodLeavesOneRow: a flood does not flood the audit trail.
func TestFloodLeavesOneRow(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set limits = '{"credential": {"burst": 1, "per_minute": 0.001}}'`)
	for range 20 {
		g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	if n := g.count(`select count(*) from audit where reason = 'flood'`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestUnusableKey: whoever sends an idempotency key relies on it, so one that
// cannot be used is refused.
func TestUnusableKey(t *testing.T) {
	g := newGate(t)
	for _, key := range []string{`7`, `""`, `"a\u0000b"`, `"` + strings.Repeat("k", 201) + `"`, `{}`} {
		g.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe_write","arguments":{"input":"a"},"_meta":{"pawgate/idempotencyKey":` + key + `}}}`).
			wantRefused(t)
	}
	if g.probe.ran.Load() != 0 {
		t.Error("it ran")
	}
}

// TestNobodyTruncates: the audit trail cannot be emptied either.
func TestNobodyTruncates(t *testing.T) {
	g := newGate(t)
	if _, err := g.db.Exec(t.Context(), `truncate audit`); err == nil || !strings.Contains(err.Error(), "append-only") {
		t.Errorf("truncate: %v", err)
	}
}

// TestRefusalsSayWhatWasTried: the row of a refused call has its arguments.
func TestRefusalsSayWhatWasTried(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set rules = '[{"tool":"probe_write","effect":"forbid"}]'`)
	g.post(write("tried this", "")).wantFault(t, "forbidden_by_rule")
	if n := g.count(`select count(*) from audit where reason = 'forbidden_by_rule' and arguments->>'input' = 'tried this'`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// wantRefused asserts a JSON-RPC error of any code.
func (r reply) wantRefused(t *testing.T) {
	t.Helper()
	if r.Error == nil || !strings.Contains(r.Error.Message, "idempotencyKey") {
		t.Fatalf("want the key refused, got HTTP %d: %s", r.Status, r.Body)
	}
}

// TestRunWithoutScopes: a run that was asked for by somebody without any scope
// has none, not all.
func TestRunWithoutScopes(t *testing.T) {
	g := newGate(t)
	for _, c := range []struct {
		scopes []string
		ok     bool
	}{{nil, true}, {[]string{}, false}, {[]string{"web:read"}, false}, {[]string{"probe:read"}, true}} {
		_, failed := g.router.LoopDoor(router.Identity{Agent: "alice", Scopes: c.scopes}).Call(t.Context(), "probe_echo", []byte(`{}`), "k")
		if failed == c.ok {
			t.Errorf("scopes %#v: failed %v", c.scopes, failed)
		}
	}
}

// TestCrowdAtOnce: of many different requests at once, only as many wait as may.
func TestCrowdAtOnce(t *testing.T) {
	g := newGate(t)
	g.unlimited()
	g.requireApproval()
	second := newSecondInstance(g)
	var group sync.WaitGroup
	for i := range 60 {
		h := []*router.Router{g.router, second}[i%2]
		group.Go(func() { g.through(h, write(fmt.Sprint(i), "")) })
	}
	group.Wait()
	if n := g.count(`select count(*) from approvals`); n != 20 {
		t.Errorf("%d requests wait, want 20", n)
	}
}

// leaky is a backend that says secrets where nobody expects them.
type leaky struct{ secret string }

func (l leaky) Call(context.Context, caller.Caller, *catalog.Entry, []byte) tool.Outcome {
	return tool.Outcome{Fault: fault.New("probe_failed", "it failed").With("detail", map[string]any{"seen": []string{l.secret}, "n": 12345678901234567})}
}

// TestSecretsInOddPlaces: a secret as a tool's name, an argument's name, a
// member of a fault, or across the place where a long argument is cut.
func TestSecretsInOddPlaces(t *testing.T) {
	const secret = "sk-ant-" + "api03-0123456789012345678901234567890123456789"
	g := newGate(t, func(c *router.Config) { c.Backends = map[string]router.Backend{"probe": leaky{secret}} })
	pem := "-----BEGIN PRIVATE KEY-----\\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n", 400) + "-----END PRIVATE KEY-----"
	f := g.post(callBody("probe_fault", `{}`))
	if strings.Contains(f.Body, secret) || !strings.Contains(f.Body, "12345678901234567") {
		t.Errorf("a fault's members: %s", f.Body)
	}
	for _, body := range []string{callBody(secret, `{}`), callBody("probe_write", `{"`+secret+`":1}`), callBody("probe_echo", `{"text":"`+pem+`"}`),
		callBody("probe_echo", `{"text":"`+strings.Repeat("x", 270)+" "+secret+" "+strings.Repeat("y", 9000)+`"}`),
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"` + secret + `"}}`} {
		g.post(body)
	}
	var rows string
	if err := g.db.QueryRow(t.Context(), `select json_agg(a)::text from audit a`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{secret[13:30], "MIIEvQIBADANBgkq"} {
		if strings.Contains(rows, part) || strings.Contains(g.log.String(), part) {
			t.Errorf("%q is kept:\n%.3000s", part, rows)
		}
	}
}
