package router_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// gate is a router over a real database and one category of probes.
type gate struct {
	*testing.T
	router *router.Router
	db     *pgxpool.Pool
	probe  *probe
	log    *syncBuffer
}

// probe counts what really ran.
type probe struct {
	ran     atomic.Int64
	last    atomic.Value // arguments of the last run
	release chan struct{}
	onWrite func() // runs inside probe_write
}

type echoArgs struct {
	Text  string  `json:"text,omitempty" doc:"Text to give back"`
	Limit int     `json:"limit,omitempty" doc:"A number" min:"1" max:"100"`
	Chat  tool.ID `json:"chat,omitempty" doc:"An identifier"`
	Token string  `json:"token,omitempty" doc:"A secret"`
}

type echoResult struct {
	Text  string `json:"text"`
	Agent string `json:"agent"`
	Chat  string `json:"chat,omitempty"`
}

type needArgs struct {
	Input string `json:"input" doc:"What to take in"`
}

type nothing struct{}

func (p *probe) category() tool.Category {
	count := func() { p.ran.Add(1) }
	return tool.Category{Name: "probe", Tools: []tool.Tool{
		tool.Read("probe_echo", "Give the text back.", func(_ context.Context, who caller.Caller, a echoArgs) (echoResult, error) {
			count()
			p.last.Store(a)
			return echoResult{Text: a.Text, Agent: who.Agent, Chat: string(a.Chat)}, nil
		}, tool.Secret("token")),
		tool.Write("probe_write", "Count a write.", func(_ context.Context, _ caller.Caller, a needArgs) (nothing, error) {
			count()
			if p.onWrite != nil {
				p.onWrite()
			}
			return nothing{}, nil
		}),
		tool.Read("probe_slow", "Wait until released.", func(ctx context.Context, _ caller.Caller, _ nothing) (nothing, error) {
			count()
			select {
			case <-p.release:
				return nothing{}, nil
			case <-ctx.Done():
				return nothing{}, ctx.Err()
			}
		}),
		tool.Read("probe_panic", "Break.", func(context.Context, caller.Caller, nothing) (nothing, error) { panic("secret-in-panic") }),
		tool.Read("probe_error", "Fail inside.", func(context.Context, caller.Caller, nothing) (nothing, error) {
			return nothing{}, errors.New("password=secret-in-error")
		}),
		tool.Read("probe_fault", "Fail in words.", func(context.Context, caller.Caller, nothing) (nothing, error) {
			return nothing{}, fault.Retry("probe_busy", 3*time.Second, "the probe is busy")
		}),
		tool.Read("probe_large", "Give much back.", func(context.Context, caller.Caller, nothing) (echoResult, error) {
			return echoResult{Text: strings.Repeat("x", tool.MaxResult+1)}, nil
		}),
		tool.Read("probe_stop", "Answer during a stop.", func(context.Context, caller.Caller, nothing) (nothing, error) { return nothing{}, nil }, tool.PassesStop),
	}}
}

const (
	aliceKey = "paw_test_alice"
	bobKey   = "paw_test_bob"
)

// newGate has two agents: alice may call everything, bob everything of the
// probe but probe_write.
func newGate(t *testing.T, options ...func(*router.Config)) *gate {
	t.Helper()
	t.Parallel()
	return newGateOn(t, postgrestest.Clone(t), options...)
}

// newGateOn is newGate over a database that the test opened itself.
func newGateOn(t *testing.T, db *pgxpool.Pool, options ...func(*router.Config)) *gate {
	t.Helper()
	g := &gate{T: t, db: db, probe: &probe{release: make(chan struct{})}, log: &syncBuffer{}}
	g.exec(`insert into agents (id, allowed_tools, denied_tools) values
		('alice', '{*}', '{}'), ('bob', '{probe_*}', '{probe_write}')`)
	for agent, key := range map[string]string{"alice": aliceKey, "bob": bobKey} {
		sum := sha256.Sum256([]byte(key))
		g.exec(`insert into api_keys (id, agent_id, hint, hash, scopes) values ($1, $2, 'paw_test', $3, '{*}')`, "key-"+agent, agent, sum[:])
	}
	category := g.probe.category()
	tools, err := catalog.Of(category)
	if err != nil {
		t.Fatal(err)
	}
	cfg := router.Config{
		Version: "test", Catalog: tools, DB: g.db, Now: time.Now, Timeout: 10 * time.Second,
		Backends: map[string]router.Backend{"probe": router.InProcess{Table: tool.Assemble(category)}},
		Log:      slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, option := range options {
		option(&cfg)
	}
	g.router = router.New(cfg)
	return g
}

func (g *gate) exec(sql string, args ...any) {
	g.Helper()
	if _, err := g.db.Exec(context.Background(), sql, args...); err != nil {
		g.Fatalf("%s: %v", sql, err)
	}
}

// unlimited lifts the limits of every agent, for tests that hurry.
func (g *gate) unlimited() {
	g.Helper()
	g.exec(`update agents set limits = (select jsonb_object_agg(class, '{"burst": 1e9, "per_minute": 1e9}'::jsonb)
		from unnest(array['credential', 'read', 'write', 'send', 'execute', 'expensive']) class)`)
}

// count is a number read from the database.
func (g *gate) count(sql string, args ...any) int {
	g.Helper()
	var n int
	if err := g.db.QueryRow(g.Context(), sql, args...).Scan(&n); err != nil {
		g.Fatalf("%s: %v", sql, err)
	}
	return n
}

// reply is an answer as a client sees it.
type reply struct {
	Status int
	Header http.Header
	Body   string
	ID     json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
	Result struct {
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent map[string]any
		Tools             []struct{ Name string }
		ProtocolVersion   string
	}
}

// post sends a body as alice; edit may change the request.
func (g *gate) post(body string, edit ...func(*http.Request)) reply {
	g.Helper()
	req := httptest.NewRequestWithContext(g.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+aliceKey)
	for _, e := range edit {
		e(req)
	}
	return g.do(req)
}

func (g *gate) do(req *http.Request) reply {
	g.Helper()
	w := httptest.NewRecorder()
	g.router.ServeHTTP(w, req)
	r := reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if body := bytes.TrimSpace(w.Body.Bytes()); bytes.HasPrefix(body, []byte(`{"jsonrpc"`)) {
		if err := json.Unmarshal(body, &r); err != nil {
			g.Fatalf("answer is not JSON: %v\n%s", err, body)
		}
	}
	return r
}

func as(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// callBody is a tools/call of the handshake revisions.
func callBody(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// modern turns a message into one of the stateless revision, headers and all.
func (g *gate) modern(method, params string, edit ...func(*http.Request)) reply {
	g.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		meta = "," + meta
	}
	name := struct{ Name string }{}
	_ = json.Unmarshal([]byte("{"+params+"}"), &name)
	edits := append([]func(*http.Request){
		header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", method),
		func(r *http.Request) {
			if name.Name != "" {
				r.Header.Set("Mcp-Name", name.Name)
			}
		}}, edit...)
	return g.post(`{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+meta+`}}`, edits...)
}

// wantError asserts a JSON-RPC error.
func (r reply) wantError(t *testing.T, status, code int, part string) {
	t.Helper()
	if r.Status != status || r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, part) {
		t.Fatalf("want HTTP %d, error %d with %q; got HTTP %d: %s", status, code, part, r.Status, r.Body)
	}
}

// wantOK asserts a success of a tool and returns its structured content.
func (r reply) wantOK(t *testing.T) map[string]any {
	t.Helper()
	if r.Status != http.StatusOK || r.Error != nil || r.Result.IsError || r.Result.StructuredContent["status"] != "ok" {
		t.Fatalf("want a success, got HTTP %d: %s", r.Status, r.Body)
	}
	return r.Result.StructuredContent
}

// wantFault asserts a tool result that is an error.
func (r reply) wantFault(t *testing.T, reason string) map[string]any {
	t.Helper()
	if r.Status != http.StatusOK || !r.Result.IsError || r.Result.StructuredContent["reason"] != reason {
		t.Fatalf("want a fault %s, got HTTP %d: %s", reason, r.Status, r.Body)
	}
	return r.Result.StructuredContent
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var _ io.Writer = (*syncBuffer)(nil)
