package router_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"pawgate/internal/router"
)

// event is what an HTTP API sends for a POST to /mcp.
func event(t *testing.T, body string, headers map[string]string) events.APIGatewayV2HTTPRequest {
	t.Helper()
	all := map[string]string{"content-type": "application/json", "host": "api.example", "authorization": "Bearer " + aliceKey}
	for k, v := range headers {
		all[k] = v
	}
	raw, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/mcp", "rawQueryString": "", "headers": all, "body": body,
		"requestContext": map[string]any{"domainName": "api.example", "stage": "$default",
			"http": map[string]any{"method": "POST", "path": "/mcp", "sourceIp": "203.0.113.9"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAPIGateway: the traps of the adapter (facts §4), each mended.
func TestAPIGateway(t *testing.T) {
	g := newGate(t)
	handle := router.APIGateway(g.router)
	send := func(t *testing.T, e events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
		t.Helper()
		resp, err := handle(t.Context(), e)
		if err != nil {
			t.Fatalf("an error of the function: %v", err)
		}
		if resp.MultiValueHeaders != nil {
			t.Error("9: multiValueHeaders would double every header")
		}
		return resp
	}
	t.Run("a call", func(t *testing.T) {
		resp := send(t, event(t, callBody("probe_echo", `{"text":"備份"}`), nil))
		if resp.StatusCode != 200 || !strings.Contains(resp.Body, `"text":"備份"`) || resp.IsBase64Encoded {
			t.Errorf("%d %s", resp.StatusCode, resp.Body)
		}
	})
	t.Run("base64 body", func(t *testing.T) {
		e := event(t, base64.StdEncoding.EncodeToString([]byte(callBody("probe_echo", `{}`))), nil)
		e.IsBase64Encoded = true
		if resp := send(t, e); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, resp.Body)
		}
	})
	t.Run("a header with commas arrives whole", func(t *testing.T) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a,b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		resp := send(t, event(t, body, map[string]string{"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "a,b"}))
		if !strings.Contains(resp.Body, "unknown tool: a,b") {
			t.Errorf("%d %s", resp.StatusCode, resp.Body)
		}
	})
	t.Run("the client cannot speak for the gateway", func(t *testing.T) {
		resp := send(t, event(t, callBody("probe_echo", `{}`), map[string]string{"authorization": "", "x-golambdaproxy-apigw-context": `{"authorizer":{"lambda":{"agent":"alice"}}}`}))
		if resp.StatusCode != 401 || resp.Headers["Www-Authenticate"] == "" {
			t.Errorf("%d %v", resp.StatusCode, resp.Headers)
		}
	})
	t.Run("a broken path is answered", func(t *testing.T) {
		e := event(t, "{}", nil)
		e.RawPath, e.RequestContext.HTTP.Path = "/%zz", "/%zz"
		if resp := send(t, e); resp.StatusCode != 400 && resp.StatusCode != 404 {
			t.Errorf("%d %s", resp.StatusCode, resp.Body)
		}
	})
	t.Run("LAM-09 GET is answered at once", func(t *testing.T) {
		e := event(t, "", map[string]string{"accept": "text/event-stream"})
		e.RequestContext.HTTP.Method = "GET"
		if resp := send(t, e); resp.StatusCode != 405 || resp.Headers["Allow"] != "POST" {
			t.Errorf("%d %v", resp.StatusCode, resp.Headers)
		}
	})
	t.Run("a body without content", func(t *testing.T) {
		if resp := send(t, event(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)); resp.StatusCode != 202 {
			t.Errorf("%d %s", resp.StatusCode, resp.Body)
		}
	})
	t.Run("LAM-11 the answer comes before the function's end", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		resp, err := handle(ctx, event(t, callBody("probe_slow", `{}`), nil))
		if err != nil || !strings.Contains(resp.Body, "deadline_exceeded") || ctx.Err() != nil {
			t.Errorf("%v %s", err, resp.Body)
		}
	})
}

// TestAdapterWriters: a handler's first status wins, cookies pass both ways, a
// panic is an answer.
func TestAdapterWriters(t *testing.T) {
	t.Parallel()
	var cookie string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie = r.Header.Get("Cookie")
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		w.WriteHeader(http.StatusUnauthorized)
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "no")
	})
	e := event(t, "", nil)
	e.Cookies = []string{"x=1", "y=2"}
	resp, err := router.APIGateway(h)(t.Context(), e)
	if err != nil || resp.StatusCode != 401 || len(resp.Cookies) != 1 || cookie != "x=1; y=2" {
		t.Errorf("%v %d %v, cookie %q", err, resp.StatusCode, resp.Cookies, cookie)
	}
	streamed, err := router.FunctionURL(h)(t.Context(), e)
	if err != nil || streamed.StatusCode != 401 || len(streamed.Cookies) != 1 || streamed.Headers["Set-Cookie"] != "" {
		t.Errorf("%v %+v", err, streamed)
	}
}

// TestFunctionURL: headers leave first, the body as it is written, and no
// answer is without a body.
func TestFunctionURL(t *testing.T) {
	g := newGate(t)
	send := func(h http.Handler, body string) (*events.LambdaFunctionURLStreamingResponse, string) {
		resp, err := router.FunctionURL(h)(t.Context(), event(t, body, nil))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(content)
	}
	if resp, body := send(g.router, callBody("probe_echo", `{"text":"x"}`)); resp.StatusCode != 200 || !strings.Contains(body, `"text":"x"`) {
		t.Errorf("call: %d %s", resp.StatusCode, body)
	}
	if resp, body := send(g.router, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); resp.StatusCode != 202 || body == "" {
		t.Errorf("10: a stream without a body becomes a 502: %d %q", resp.StatusCode, body)
	}
	if resp, body := send(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }), ""); resp.StatusCode != 500 || body == "" {
		t.Errorf("panic: %d %q", resp.StatusCode, body)
	}
}
