package router_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// telling is a backend whose calls tell their progress.
type telling func(report func(tool.Progress)) tool.Outcome

func (b telling) Call(ctx context.Context, _ caller.Caller, _ *catalog.Entry, _ []byte) tool.Outcome {
	return b(tool.Listener(ctx))
}

// clock goes on by a second with every look, so that nothing is too soon.
func clock() func() time.Time {
	var looks atomic.Int64
	start := time.Now()
	return func() time.Time { return start.Add(time.Duration(looks.Add(1)) * time.Second) }
}

func tellingGate(t *testing.T, b telling) *gate {
	t.Helper()
	return newGate(t, func(c *router.Config) { c.Backends = map[string]router.Backend{"probe": b}; c.Now = clock() })
}

func callWithToken(token string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe_echo","arguments":{},"_meta":{"progressToken":` + token + `}}}`
}

// pushed are the messages of a stream.
func pushed(body string) (messages []string) {
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			messages = append(messages, data)
		}
	}
	return messages
}

const done = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"status\":\"ok\"}"}],"structuredContent":{"status":"ok"}}}`

func TestProgress(t *testing.T) {
	var late func(tool.Progress)
	g := tellingGate(t, func(report func(tool.Progress)) tool.Outcome {
		for _, p := range []tool.Progress{{Done: 1, Total: 4, Message: "begun"}, {Done: 1}, {Done: 0.5}, {Done: 2.5, Message: "key sk-ant-api03-" + strings.Repeat("a1B2", 20)}, {Done: 4, Message: strings.Repeat("備", 200)}} {
			report(p)
		}
		late = report
		return tool.Outcome{OK: []byte(`{}`)}
	})
	r := g.post(callWithToken(`"t\"1"`))
	if got := r.Header.Get("Content-Type"); got != "text/event-stream" || r.Status != 200 {
		t.Fatalf("HTTP %d, %s: %s", r.Status, got, r.Body)
	}
	got := pushed(r.Body)
	if len(got) != 4 || !strings.Contains(got[1], `"progress":2.5,"message":"key `) || strings.Contains(got[1], "a1B2") {
		t.Fatalf("events %q", got)
	}
	got[1] = ""
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\"1","progress":1,"total":4,"message":"begun"}}`, "",
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\"1","progress":4,"message":"` + strings.Repeat("備", 100) + `…"}}`,
		done,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	late(tool.Progress{Done: 9}) // after the answer nothing is written, and nothing breaks
	t.Run("an integer token, the stateless revision", func(t *testing.T) {
		r := g.modern("tools/call", `"name":"probe_echo","arguments":{},"progressToken":0`)
		if strings.Contains(r.Body, "notifications/progress") {
			t.Errorf("a token outside _meta counts: %s", r.Body)
		}
		body := strings.Replace(callWithToken("12345678901234567890"), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`, 1)
		r = g.post(body, header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "tools/call"), header("Mcp-Name", "probe_echo"))
		if got := pushed(r.Body); len(got) != 4 || !strings.Contains(got[0], `"progressToken":12345678901234567890,"progress":1,`) || !strings.Contains(got[3], `"resultType":"complete"`) {
			t.Errorf("events %q", got)
		}
	})
}

// Nobody is sent progress who did not ask for it, or could not read it.
func TestProgressNotWanted(t *testing.T) {
	g := tellingGate(t, func(report func(tool.Progress)) tool.Outcome {
		if report != nil {
			report(tool.Progress{Done: 1})
		}
		return tool.Outcome{OK: []byte(`{}`)}
	})
	for name, c := range map[string]struct {
		body string
		edit func(*http.Request)
	}{
		"no token":           {callBody("probe_echo", `{}`), nil},
		"token null":         {callWithToken("null"), nil},
		"token of no kind":   {callWithToken(`{"a":1}`), nil},
		"token too long":     {callWithToken(`"` + strings.Repeat("x", 300) + `"`), nil},
		"reads JSON only":    {callWithToken("1"), header("Accept", "application/json")},
		"accepts everything": {callWithToken("1"), header("Accept", "*/*")},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edit == nil {
				c.edit = func(*http.Request) {}
			}
			r := g.post(c.body, c.edit)
			r.wantOK(t)
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
				t.Errorf("%s: %s", r.Header.Get("Content-Type"), r.Body)
			}
		})
	}
}

// Reports that come quickly are thinned out.
func TestProgressIsThinned(t *testing.T) {
	g := newGate(t, func(c *router.Config) {
		fixed := time.Now()
		c.Now = func() time.Time { return fixed }
		c.Backends = map[string]router.Backend{"probe": telling(func(report func(tool.Progress)) tool.Outcome {
			for i := range 1000 {
				report(tool.Progress{Done: float64(i + 1)})
			}
			return tool.Outcome{OK: []byte(`{}`)}
		})}
	})
	if got := pushed(g.post(callWithToken("1")).Body); len(got) != 2 {
		t.Errorf("%d events", len(got))
	}
}

// Progress leaves while the call still runs, over a real connection.
func TestProgressAsItHappens(t *testing.T) {
	goOn := make(chan struct{})
	g := tellingGate(t, func(report func(tool.Progress)) tool.Outcome {
		report(tool.Progress{Done: 1})
		<-goOn
		return tool.Outcome{OK: []byte(`{}`)}
	})
	server := httptest.NewServer(g.router)
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(callWithToken("1")))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "Authorization": "Bearer " + aliceKey} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "notifications/progress") {
			close(goOn) // would never be reached if the answer were held back
		}
	}
	if n := g.count(`select count(*) from audit where kind = 'outcome' and outcome = 'ok'`); n != 1 {
		t.Errorf("%d outcomes on record", n)
	}
}

// A broken argument that the tool finds after it told progress is an event
// like any other.
func TestProgressThenError(t *testing.T) {
	g := tellingGate(t, func(report func(tool.Progress)) tool.Outcome {
		report(tool.Progress{Done: 1})
		return tool.Outcome{Invalid: fault.Invalid("text", "text is wrong")}
	})
	got := pushed(g.post(callWithToken("1")).Body)
	if len(got) != 2 || !strings.Contains(got[1], `"id":7,"error":{"code":-32602,"message":"text is wrong"`) {
		t.Errorf("events %q", got)
	}
}

// Behind an HTTP API nothing streams: progress and answer leave in one piece,
// as a stream all the same.
func TestProgressThroughLambda(t *testing.T) {
	g := tellingGate(t, func(report func(tool.Progress)) tool.Outcome {
		report(tool.Progress{Done: 1})
		return tool.Outcome{OK: []byte(`{}`)}
	})
	event := events.APIGatewayV2HTTPRequest{RawPath: "/mcp", Body: callWithToken("1"),
		Headers: map[string]string{"content-type": "application/json", "accept": "application/json, text/event-stream", "authorization": "Bearer " + aliceKey}}
	event.RequestContext.HTTP.Method = http.MethodPost
	resp, err := router.APIGateway(g.router)(t.Context(), event)
	if err != nil || resp.StatusCode != 200 || resp.Headers["Content-Type"] != "text/event-stream" || len(pushed(resp.Body)) != 2 {
		t.Errorf("%v %+v", err, resp)
	}
}
