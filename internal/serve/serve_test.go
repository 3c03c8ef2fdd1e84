package serve_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
)

type args struct {
	Text string `json:"text,omitempty" doc:"Text"`
}

type result struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
}

// fixture is a category that says who called, and a router's signer for it.
type fixture struct {
	category tool.Category
	signer   caller.Signer
	public   ed25519.PublicKey
	ran      int
}

func newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{signer: caller.NewSigner(private, time.Now), public: public}
	f.category = tool.Category{Name: name, Tools: []tool.Tool{
		tool.Read("probe_echo", "Say who calls.", func(ctx context.Context, who caller.Caller, a args) (result, error) {
			f.ran++
			if a.Text == "wait" {
				<-ctx.Done()
				return result{}, ctx.Err()
			}
			return result{Agent: who.Agent, Text: a.Text}, nil
		}),
	}}
	return f
}

func (f *fixture) host(t *testing.T) *serve.Host {
	t.Helper()
	h, err := serve.NewHost(f.category, serve.Config{PublicKey: caller.FormatKey(f.public)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call is a signed call of probe_echo.
func (f *fixture) call(t *testing.T, arguments string) tool.Call {
	t.Helper()
	assertion, err := f.signer.Sign(caller.Caller{Agent: "alice"}, f.category.Name, "probe_echo", []byte(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{V: tool.Version, Tool: "probe_echo", Arguments: json.RawMessage(arguments), Assertion: assertion}
}

// TestOnlyThroughTheGate: GHSA-vw82-7fv8-r6gp: no call without an assertion
// that was made for it.
func TestOnlyThroughTheGate(t *testing.T) {
	t.Parallel()
	f, other := newFixture(t, "probe"), newFixture(t, "other")
	host := f.host(t)
	elsewhere := other.call(t, `{}`)
	for _, c := range []struct {
		name string
		call func() tool.Call
		ok   bool
	}{
		{"signed", func() tool.Call { return f.call(t, `{"text":"<hi>"}`) }, true},
		{"unsigned", func() tool.Call { c := f.call(t, `{}`); c.Assertion = ""; return c }, false},
		{"unsigned with a caller", func() tool.Call {
			c := f.call(t, `{}`)
			c.Assertion, c.Caller = "", &caller.Caller{Agent: "alice", Scopes: []string{"operator"}}
			return c
		}, false},
		{"forged", func() tool.Call { return elsewhere }, false},
		{"for other arguments", func() tool.Call { c := f.call(t, `{}`); c.Arguments = []byte(`{"text":"x"}`); return c }, false},
		{"for another tool", func() tool.Call { c := f.call(t, `{}`); c.Tool = "probe_other"; return c }, false},
		{"another version", func() tool.Call { c := f.call(t, `{}`); c.V = 2; return c }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := f.ran
			out := host.Handle(t.Context(), c.call())
			if c.ok != (out.OK != nil) || c.ok != (f.ran > before) {
				t.Errorf("outcome %+v, ran %d", out, f.ran-before)
			}
		})
	}
}

// TestUnsigned: an unsigned call is believed only under SAM local and only
// when no key is configured.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "probe")
	if _, err := serve.NewHost(f.category, serve.Config{}, time.Now); err == nil || !strings.Contains(err.Error(), "PAWGATE_ASSERTION_PUBLIC_KEY") {
		t.Fatalf("a host without a key: %v", err)
	}
	if _, err := serve.NewHost(f.category, serve.Config{PublicKey: "x", SAMLocal: true}, time.Now); err == nil {
		t.Fatal("a broken key was taken for none")
	}
	local, err := serve.NewHost(f.category, serve.Config{SAMLocal: true}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	call := tool.Call{V: tool.Version, Tool: "probe_echo", Arguments: []byte(`{}`), Caller: &caller.Caller{Agent: "alice"}}
	if out := local.Handle(t.Context(), call); !strings.Contains(string(out.OK), "alice") {
		t.Errorf("under SAM local: %+v", out)
	}
	call.Caller = nil
	if out := local.Handle(t.Context(), call); out.Fault == nil {
		t.Errorf("without a caller: %+v", out)
	}
	keyed, err := serve.NewHost(f.category, serve.Config{SAMLocal: true, PublicKey: caller.FormatKey(f.public)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	call.Caller = &caller.Caller{Agent: "alice"}
	if out := keyed.Handle(t.Context(), call); out.Fault == nil {
		t.Errorf("unsigned although a key is configured: %+v", out)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "probe")
	call := f.call(t, `{"text":"wait"}`)
	call.Deadline = time.Now().Add(50 * time.Millisecond)
	if out := f.host(t).Handle(t.Context(), call); out.Fault == nil || out.Fault.Reason != fault.DeadlineExceeded {
		t.Errorf("outcome %+v", out)
	}
}

// TestHandler: the sidecar's HTTP form of the same call.
func TestHandler(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "probe")
	handler := serve.Handler(map[string]*serve.Host{"probe": f.host(t)})
	post := func(path string, body []byte) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
		return w
	}
	good, err := tool.Marshal(f.call(t, `{"text":"<hi>"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, body string
		status           int
		part             string
	}{
		{"good", "/call/probe", string(good), 200, `{"ok":{"agent":"alice","text":"<hi>"}}`},
		{"another category", "/call/other", string(good), 404, "not_found"},
		{"not JSON", "/call/probe", "x", 400, "denied"},
		{"not signed", "/call/probe", `{"v":1,"tool":"probe_echo","arguments":{},"caller":{"agent":"alice"}}`, 200, "denied"},
		{"too large", "/call/probe", `{"tool":"` + strings.Repeat("x", 6<<20) + `"}`, 413, "denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w := post(c.path, []byte(c.body)); w.Code != c.status || !strings.Contains(w.Body.String(), c.part) {
				t.Errorf("HTTP %d: %.300s", w.Code, w.Body)
			}
		})
	}
}
