package router_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestCall goes through the whole gate and back.
func TestCall(t *testing.T) {
	g := newGate(t)
	for _, c := range []struct {
		name, body string
		want       map[string]any
	}{
		{"plain", callBody("probe_echo", `{"text":"hello"}`), map[string]any{"text": "hello", "agent": "alice"}},
		{"not escaped", callBody("probe_echo", `{"text":"<a&b> 備份"}`), map[string]any{"text": "<a&b> 備份"}},
		{"MCP-09 arguments null", callBody("probe_echo", `null`), map[string]any{"text": ""}},
		{"MCP-09 arguments left out", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe_echo"}}`, map[string]any{"text": ""}},
		{"MCP-11 number as text", callBody("probe_echo", `{"limit":"5","text":"n"}`), map[string]any{"text": "n"}},
		{"E49 number as text", callBody("probe_echo", `{"limit":"90"}`), map[string]any{"text": ""}},
		{"E50 ten thousand Japanese characters", callBody("probe_echo", `{"text":"`+strings.Repeat("日", 10_000)+`"}`), map[string]any{"text": strings.Repeat("日", 10_000)}},
		{"MCP-12 long id as number", callBody("probe_echo", `{"chat":1234567890123456789}`), map[string]any{"chat": "1234567890123456789"}},
		{"MCP-14 one qualifier", callBody("mcp__pawgate__probe_echo", `{}`), map[string]any{"agent": "alice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := g.post(c.body).wantOK(t)
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s = %v, want %v", key, got[key], want)
				}
			}
		})
	}
}

// TestCallTextIsStructuredContent: clients that read content and those that
// read structuredContent see the same object.
func TestCallTextIsStructuredContent(t *testing.T) {
	g := newGate(t)
	r := g.post(callBody("probe_echo", `{"text":"a \"quoted\" line\n"}`))
	r.wantOK(t)
	var text map[string]any
	if err := json.Unmarshal([]byte(r.Result.Content[0].Text), &text); err != nil {
		t.Fatal(err)
	}
	if text["text"] != r.Result.StructuredContent["text"] || text["status"] != "ok" {
		t.Errorf("text %v, structured %v", text, r.Result.StructuredContent)
	}
}

// TestCallModern: the stateless revision, with its headers and statuses.
func TestCallModern(t *testing.T) {
	g := newGate(t)
	r := g.modern("tools/call", `"name":"probe_echo","arguments":{"text":"hi"}`)
	r.wantOK(t)
	if !strings.Contains(r.Body, `"resultType":"complete"`) {
		t.Errorf("no resultType: %s", r.Body)
	}
	g.modern("tools/call", `"name":"probe_write","arguments":{}`).wantError(t, 400, -32602, "Missing required parameter: input")
	g.modern("tools/call", `"name":"nope"`).wantError(t, 400, -32602, "unknown tool: nope")
	list := g.modern("tools/list", "")
	if len(list.Result.Tools) != 8 || !strings.Contains(list.Body, `"ttlMs"`) {
		t.Errorf("list: %s", list.Body)
	}
	if r := g.modern("server/discover", ""); !strings.Contains(r.Body, "2026-07-28") {
		t.Errorf("discover: %s", r.Body)
	}
	// GHSA-4gph-2hhr-5mwg: the header names another tool than the body.
	g.modern("tools/call", `"name":"probe_write","arguments":{"input":"x"}`, header("Mcp-Name", "probe_echo")).wantError(t, 400, -32020, "probe_write")
	g.modern("tools/call", `"name":"mcp__pawgate__probe_echo"`).wantOK(t)
}

// TestListen: facts §0.5: a stream that has nothing to announce says so and
// ends, every time.
func TestListen(t *testing.T) {
	g := newGate(t)
	for range 20 {
		r := g.modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		if r.Status != 200 || strings.Count(r.Body, "event: message\n") != 2 || strings.Contains(r.Body, "pawgate-id") ||
			!strings.Contains(r.Body, `"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}`) ||
			!strings.Contains(r.Body, `"id":7,"result"`) {
			t.Fatalf("HTTP %d %s", r.Status, r.Body)
		}
	}
	g.modern("subscriptions/listen", "", header("Mcp-Method", "tools/list")).wantError(t, 400, -32020, "")
}

// TestHandshake: the three older revisions, and nothing kept between calls.
func TestHandshake(t *testing.T) {
	g := newGate(t)
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			r := g.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			if r.Result.ProtocolVersion != version || r.Header.Get("Mcp-Session-Id") != "" {
				t.Fatalf("initialize: %s %v", r.Body, r.Header)
			}
			if r := g.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.Status != http.StatusAccepted || r.Body != "" {
				t.Errorf("notification: HTTP %d %q", r.Status, r.Body)
			}
			g.post(callBody("probe_echo", `{}`), header("Mcp-Protocol-Version", version)).wantOK(t)
		})
	}
	t.Run("a future version is answered with the newest handshake revision", func(t *testing.T) {
		r := g.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if r.Result.ProtocolVersion != "2025-11-25" {
			t.Errorf("version %s", r.Result.ProtocolVersion)
		}
	})
	for _, id := range []string{"MCP-24", "LAM-10", "A1"} {
		t.Run(id+" a stale or foreign session id has no effect", func(t *testing.T) {
			g.post(callBody("probe_echo", `{}`), header("Mcp-Session-Id", "mcp-session-of-somebody-else")).wantOK(t)
		})
	}
}

// TestAnswers is DESIGN's table of answers.
func TestAnswers(t *testing.T) {
	g := newGate(t)
	g.post(callBody("probe_fault", `{}`)).wantFault(t, "probe_busy")
	if got := g.post(callBody("probe_fault", `{}`)).Result.StructuredContent; got["retry_after_ms"] != 3000.0 || got["status"] != "error" || got["error"] != "the probe is busy" {
		t.Errorf("fault: %v", got)
	}
	g.post(callBody("probe_write", `{}`)).wantError(t, 200, -32602, "Missing required parameter: input")
	g.post(callBody("probe_echo", `{"limit":"5.5"}`)).wantError(t, 200, -32602, "limit must be a whole number")
	g.post(callBody("probe_echo", `{"limit":101}`)).wantError(t, 200, -32602, "limit must be between 1 and 100")
	t.Run("LAM-05 a result too large to carry", func(t *testing.T) {
		g.post(callBody("probe_large", `{}`)).wantFault(t, "too_large")
	})
	for name, secret := range map[string]string{"probe_error": "secret-in-error", "probe_panic": "secret-in-panic"} {
		t.Run("H71 "+name+" shows no cause", func(t *testing.T) {
			r := g.post(callBody(name, `{}`))
			r.wantFault(t, "internal")
			if strings.Contains(r.Body, secret) {
				t.Errorf("the cause leaked: %s", r.Body)
			}
		})
	}
	g.post(callBody("probe_echo", `{}`)).wantOK(t) // the process lives
}

// TestUnknownLooksDenied: MCP-13, C20, AUTH-01: an agent cannot learn which
// tools exist, and every attempt is on record.
func TestUnknownLooksDenied(t *testing.T) {
	g := newGate(t)
	for _, name := range []string{"probe_write", "no_such_tool"} {
		r := g.post(callBody(name, `{"input":"x"}`), as(bobKey))
		r.wantError(t, 200, -32602, "unknown tool: "+name)
		want := strings.ReplaceAll(`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"unknown tool: NAME","data":{"reason":"unknown_tool"}}}`, "NAME", name)
		if strings.TrimSpace(r.Body) != want {
			t.Errorf("got  %s\nwant %s", r.Body, want)
		}
	}
	if n := g.probe.ran.Load(); n != 0 {
		t.Errorf("%d calls ran", n)
	}
	if n := g.count(`select count(*) from audit where agent_id = 'bob' and decision = 'refused' and reason in ('denied', 'unknown_tool')`); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
}

// TestNames: MCP-14, MCP-15: one canonical form, everything else is unknown.
func TestNames(t *testing.T) {
	g := newGate(t)
	for _, name := range []string{
		"mcp__a__mcp__b__probe_echo", "server__probe_echo", "probe__echo", "mcp____probe_echo", "mcp__pawgate__",
		"Probe_Echo", "probe_echo ", " probe_echo", "probe_echо", "MCP__pawgate__probe_echo", "",
	} {
		t.Run(name, func(t *testing.T) {
			g.post(callBody(name, `{}`)).wantError(t, 200, -32602, "unknown tool: ")
		})
	}
	if n := g.probe.ran.Load(); n != 0 {
		t.Errorf("%d calls ran", n)
	}
}

// TestList shows exactly what may be called, on one page.
func TestList(t *testing.T) {
	g := newGate(t)
	names := func(key string) (names []string) {
		for _, tool := range g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, as(key)).Result.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	if got := names(aliceKey); len(got) != 8 || got[0] != "probe_echo" {
		t.Errorf("alice sees %v", got)
	}
	for _, name := range names(bobKey) {
		if name == "probe_write" {
			t.Errorf("bob sees %s", name)
		}
	}
	t.Run("C23 AUTH-06 an empty allow list lists nothing", func(t *testing.T) {
		g.exec(`update agents set allowed_tools = '{}' where id = 'bob'`)
		if got := names(bobKey); len(got) != 0 {
			t.Errorf("bob sees %v", got)
		}
		r := g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, as(bobKey))
		if !strings.Contains(r.Body, `"tools":[]`) {
			t.Errorf("not an empty array: %s", r.Body)
		}
	})
	t.Run("C22 the list is exactly the allow list", func(t *testing.T) {
		g.exec(`update agents set allowed_tools = '{probe_echo,probe_slow}' where id = 'bob'`)
		if got := strings.Join(names(bobKey), " "); got != "probe_echo probe_slow" {
			t.Errorf("bob sees %v", got)
		}
	})
	t.Run("D40 one page, no cursor", func(t *testing.T) {
		if r := g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); strings.Contains(r.Body, "nextCursor") {
			t.Errorf("a cursor: %s", r.Body)
		}
		g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`).wantError(t, 200, -32602, "cursor")
	})
}
