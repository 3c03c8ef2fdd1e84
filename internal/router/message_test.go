package router_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestMessage: what the strict parse refuses, and that nothing runs then.
func TestMessage(t *testing.T) {
	g := newGate(t)
	call := callBody("probe_echo", `{}`)
	for _, c := range []struct {
		name, body   string
		status, code int
		part         string
	}{
		{"MCP-01 case-variant name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"probe_echo","Name":"probe_write"}}`, 400, -32600, `"Name" is not "name"`},
		{"CVE-2026-27896 case-variant Method", `{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"ping"}`, 400, -32600, `"Method"`},
		{"CVE-2026-27896 case-variant PARAMS", `{"jsonrpc":"2.0","id":1,"method":"ping","PARAMS":{}}`, 400, -32600, `"PARAMS"`},
		{"MCP-02 long s", `{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{}}`, 400, -32600, "paramſ"},
		{"MCP-02 Kelvin sign stays an unknown member", `{"jsonrpc":"2.0","id":1,"method":"ping","\u212a":{}}`, 200, 0, ""},
		{"MCP-03 duplicate name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"probe_echo","name":"probe_write"}}`, 400, -32600, "twice"},
		{"MCP-03 duplicate argument", callBody("probe_echo", `{"text":"a","text":"b"}`), 400, -32600, "twice"},
		{"MCP-04 batch", `[` + call + `,` + call + `]`, 400, -32600, "batch"},
		{"MCP-05 id null", `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"probe_echo"}}`, 400, -32600, "id must be"},
		{"MCP-07 id of 1 MB", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"ping"}`, 400, -32600, "id must be"},
		{"MCP-07 id an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600, "id must be"},
		{"MCP-07 id an array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, 400, -32600, "id must be"},
		{"MCP-07 id with an exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, 400, -32600, "id must be"},
		{"MCP-10 arguments a string", callBody("probe_echo", `"{\"text\":\"x\"}"`), 200, -32602, "arguments must be an object"},
		{"MCP-11 text for a number", callBody("probe_echo", `{"limit":"12px"}`), 200, -32602, "limit"},
		{"MCP-11 empty text for a number", callBody("probe_echo", `{"limit":""}`), 200, -32602, "limit"},
		{"MCP-16 invalid UTF-8", callBody("probe_echo", "{\"text\":\"\xff\xfe\"}"), 400, -32700, "not valid JSON"},
		{"MCP-17 NUL", callBody("probe_echo", `{"text":"a\u0000b"}`), 200, -32602, "text holds a NUL"},
		{"MCP-18 lone surrogate", callBody("probe_echo", `{"text":"\ud83d"}`), 400, -32700, "not valid JSON"},
		{"GHSA-q382-vc8q-7jhj NUL in a member's name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name\u0000x":"a","name":"probe_echo"}}`, 400, -32600, "NUL"},
		{"MCP-19 ten thousand levels", callBody("probe_echo", strings.Repeat(`{"a":`, 10_001)+`1`+strings.Repeat(`}`, 10_001)), 400, -32700, "nested"},
		{"MCP-19 only opening brackets", strings.Repeat(`[`, 3<<20), 400, -32700, "nested"},
		{"MCP-27 misspelt argument", callBody("probe_write", `{"inptu":"x"}`), 200, -32602, `unknown argument "inptu"; this tool takes input`},
		{"MCP-27 one argument too many", callBody("probe_write", `{"input":"x","more":1}`), 200, -32602, `unknown argument "more"; this tool takes input`},
		{"MCP-28 required argument left out", callBody("probe_write", `{}`), 200, -32602, "Missing required parameter: input"},
		{"MCP-29 second message", call + call, 400, -32700, "after"},
		{"MCP-29 bracket behind", call + `]`, 400, -32700, ""},
		{"MCP-29 word behind", call + ` x`, 400, -32700, ""},
		{"truncated", call[:len(call)-5], 400, -32700, ""},
		{"empty", "", 400, -32700, "exactly one"},
		{"not an object", `"hello"`, 400, -32600, "object"},
		{"no version", `{"id":1,"method":"ping"}`, 400, -32600, "jsonrpc"},
		{"no method", `{"jsonrpc":"2.0","id":1}`, 400, -32600, "method"},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":5}`, 400, -32600, "method must be a string"},
		{"params an array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, 400, -32602, "params must be an object"},
		{"name a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, 400, -32600, "name must be a string"},
		{"number past 64 bits", callBody("probe_echo", `{"limit":99999999999999999999}`), 200, -32602, "too large"},
		{"CVE-2026-47427 empty completion", `{"jsonrpc":"2.0","id":1,"method":"completion/complete"}`, 200, -32601, ""},
		{"tasks are not offered", `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`, 200, -32601, ""},
		{"resources are not offered", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, 200, -32601, ""},
		{"a shared log level is not offered", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, 200, -32601, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.post(c.body)
			if c.code == 0 {
				if r.Status != c.status || r.Error != nil {
					t.Fatalf("HTTP %d: %s", r.Status, r.Body)
				}
				return
			}
			r.wantError(t, c.status, c.code, c.part)
			if len(r.Body) > 2000 {
				t.Errorf("the answer echoes %d bytes", len(r.Body))
			}
		})
	}
	if n := g.probe.ran.Load(); n != 0 {
		t.Errorf("%d calls ran", n)
	}
	g.post(call).wantOK(t) // the process lives
}

// TestID: MCP-06 and numbers past 2^53: the id comes back as it was sent.
func TestID(t *testing.T) {
	g := newGate(t)
	for _, id := range []string{`"1"`, `1`, `0`, `-5`, `9007199254740993`, `123456789012345678901234567890`, `"é\"<&>"`, `"pawgate-id"`} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"probe_echo","arguments":{"text":"\"id\":\"pawgate-id\""}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"nope"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":[]}`,
		} {
			r := g.post(strings.Replace(body, "ID", id, 1))
			if string(r.ID) != id {
				t.Errorf("sent id %s in %s, got %s", id, body, r.Body)
			}
		}
	}
}

// TestNotification: MCP-08: a call that cannot be answered does not run, and
// the attempt is on record.
func TestNotification(t *testing.T) {
	g := newGate(t)
	g.post(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"probe_write","arguments":{"input":"x"}}}`).
		wantError(t, 400, -32600, "needs an id")
	if g.probe.ran.Load() != 0 {
		t.Error("it ran")
	}
	if n := g.count(`select count(*) from audit where reason = 'no_id' and tool = 'probe_write' and agent_id = 'alice'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`,
	} {
		if r := g.post(body); r.Status != http.StatusAccepted {
			t.Errorf("%s: HTTP %d", body, r.Status)
		}
	}
}

// TestForeignCancellation: facts §0.3c: one caller's cancellation must not end
// another's call with the same id.
func TestForeignCancellation(t *testing.T) {
	g := newGate(t)
	done := make(chan reply, 1)
	go func() { done <- g.post(callBody("probe_slow", `{}`)) }()
	waitFor(t, func() bool { return g.probe.ran.Load() == 1 })
	g.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, as(bobKey))
	close(g.probe.release)
	(<-done).wantOK(t)
}

// TestHTTP: the transport's own rules.
func TestHTTP(t *testing.T) {
	g := newGate(t)
	request := func(method, path, body string, edit ...func(*http.Request)) reply {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+aliceKey)
		for _, e := range edit {
			e(req)
		}
		return g.do(req)
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		name   string
		reply  reply
		status int
	}{
		{"LAM-09 GET", request("GET", "/mcp", ""), 405},
		{"LAM-09 GET for events", request("GET", "/mcp", "", header("Accept", "text/event-stream")), 405},
		{"DELETE", request("DELETE", "/mcp", ""), 405},
		{"GET without a key", request("GET", "/mcp", "", header("Authorization", "")), 405},
		{"MCP-22 Accept anything", request("POST", "/mcp", ping, header("Accept", "*/*")), 200},
		{"MCP-22 Accept JSON", request("POST", "/mcp", ping, header("Accept", "application/json")), 200},
		{"MCP-22 no Accept", request("POST", "/mcp", ping), 200},
		{"MCP-22 Accept plain text", request("POST", "/mcp", ping, header("Accept", "text/plain")), 406},
		{"CVE-2026-33252 plain text", request("POST", "/mcp", ping, header("Content-Type", "text/plain")), 415},
		{"charset", request("POST", "/mcp", ping, header("Content-Type", "application/json; charset=utf-8")), 200},
		{"MCP-21 unknown version", request("POST", "/mcp", ping, header("Mcp-Protocol-Version", "1999-01-01")), 400},
		{"MCP-23 foreign Origin", request("POST", "/mcp", ping, header("Origin", "https://evil.example")), 403},
		{"MCP-23 null Origin", request("POST", "/mcp", ping, header("Origin", "null")), 403},
		{"MCP-23 foreign Origin on GET", request("GET", "/mcp", "", header("Origin", "https://evil.example")), 403},
		{"MCP-23 foreign Origin on DELETE", request("DELETE", "/mcp", "", header("Origin", "https://evil.example")), 403},
		{"MCP-20 stated length of 50 MB", request("POST", "/mcp", ping, func(r *http.Request) { r.ContentLength = 50 << 20 }), 413},
		{"MCP-20 10 MB without a length", request("POST", "/mcp", "", func(r *http.Request) {
			r.ContentLength = -1
			r.Body = io.NopCloser(io.LimitReader(zeros{}, 10<<20))
		}), 413},
		{"unknown path", request("POST", "/other", ping), 404},
		{"trailing slash", request("POST", "/mcp/", ping), 200},
		{"GHSA-g53w-w6mj-hrpp the way between router and function is not public", request("POST", "/call/probe", `{"v":1,"tool":"probe_echo"}`), 404},
		{"health", request("GET", "/healthz", "", header("Authorization", "")), 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.reply.Status != c.status {
				t.Errorf("HTTP %d, want %d: %s", c.reply.Status, c.status, c.reply.Body)
			}
			if c.status == 405 && c.reply.Header.Get("Allow") != "POST" {
				t.Errorf("Allow: %q", c.reply.Header.Get("Allow"))
			}
			if c.status >= 400 && c.reply.Header.Get("Content-Type") != "application/json" && !strings.HasPrefix(c.name, "MCP-21") {
				t.Errorf("47: not JSON: %s", c.reply.Body)
			}
		})
	}
	if n := g.count(`select count(*) from audit`); n != 0 {
		t.Errorf("%d audit rows of requests that were no calls", n)
	}
}

// TestHosts: CVE-2025-64443, CVE-2026-9739: DNS rebinding.
func TestHosts(t *testing.T) {
	g := newGate(t, func(c *configAlias) { c.AllowedHosts = []string{"localhost", "127.0.0.1", "[::1]"} })
	for host, status := range map[string]int{
		"localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "localhost": 200,
		"evil.example": 403, "localhost.evil.example:8080": 403, "127.0.0.1.evil.example": 403,
	} {
		r := g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, func(r *http.Request) { r.Host = host })
		if r.Status != status {
			t.Errorf("Host %s: HTTP %d, want %d", host, r.Status, status)
		}
	}
	for origin, status := range map[string]int{"http://localhost:8080": 200, "http://localhost:9999": 403, "http://evil.example": 403, "null": 403} {
		r := g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, func(r *http.Request) { r.Host = "localhost:8080"; r.Header.Set("Origin", origin) })
		if r.Status != status {
			t.Errorf("Origin %s: HTTP %d, want %d", origin, r.Status, status)
		}
	}
}

// TestDeadline: LAM-11: the answer comes before the gateway's own end.
func TestDeadline(t *testing.T) {
	g := newGate(t, func(c *configAlias) { c.Timeout = 300 * time.Millisecond })
	started := time.Now()
	r := g.post(callBody("probe_slow", `{}`))
	if f := r.wantFault(t, "deadline_exceeded"); !strings.Contains(f["error"].(string), "it changes nothing") {
		t.Errorf("fault %v", f)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("answered after %s", took)
	}
	if n := g.count(`select count(*) from audit where tool = 'probe_slow' and outcome = 'fault' and reason = 'deadline_exceeded'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

// TestSlowAndFast: a slow call never holds up a fast one.
func TestSlowAndFast(t *testing.T) {
	g := newGate(t)
	done := make(chan reply, 20)
	for range 20 {
		go func() { done <- g.post(callBody("probe_slow", `{}`)) }()
	}
	waitFor(t, func() bool { return g.probe.ran.Load() == 20 })
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
	close(g.probe.release)
	for range 20 {
		(<-done).wantOK(t)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("the condition did not come")
}

// FuzzBody: whatever is posted is answered in JSON, and the router lives.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{callBody("probe_echo", `{"text":"x"}`), `{}`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "\x00", `{"a":{"a":{}}}`} {
		f.Add([]byte(seed))
	}
	g := newOfflineRouter(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(string(body)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, req)
		if w.Code != http.StatusBadRequest && w.Code != http.StatusServiceUnavailable {
			t.Errorf("HTTP %d without a database: %s", w.Code, w.Body)
		}
		if !strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":`) {
			t.Errorf("not JSON-RPC: %q", w.Body)
		}
	})
}
