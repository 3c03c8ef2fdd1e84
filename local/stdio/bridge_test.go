package stdio

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const testKey = "paw_test_0123456789abcdef"

// bridge starts a session against an HTTP server of this test.
func bridge(t *testing.T, h http.HandlerFunc) (*session, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return start(t, Options{URL: srv.URL + "/mcp", Key: testKey}), srv
}

type wireError struct {
	ID    json.RawMessage
	Error struct {
		Code    int
		Message string
		Data    errorData
	}
}

func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	page := "<html><head><title>502 Bad Gateway</title><style>p{}</style></head><body><h1>nginx</h1></body></html>"
	tests := []struct {
		name, kind string
		status     int
		header     [2]string
		body       string
		text       string // with HOST for the server's address
		data       errorData
	}{
		{"gateway page", "text/html", 502, [2]string{}, page,
			`HTTP 502 Bad Gateway from HOST: whether the call took effect is not known; it was not sent again (it says: "502 Bad Gateway")`,
			errorData{Reason: "outcome_unknown", HTTPStatus: 502}},
		{"gateway JSON", "application/json", 500, [2]string{}, `{"message":"Internal Server Error"}`,
			`HTTP 500 Internal Server Error from HOST: whether the call took effect is not known; it was not sent again (it says: "Internal Server Error")`,
			errorData{Reason: "outcome_unknown", HTTPStatus: 500}},
		{"gateway timeout, no body", "", 504, [2]string{}, "",
			`HTTP 504 Gateway Timeout from HOST: whether the call took effect is not known; it was not sent again`,
			errorData{Reason: "outcome_unknown", HTTPStatus: 504}},
		{"wrong key, text", "text/plain", 401, [2]string{}, "unauthorized",
			`HTTP 401 Unauthorized from HOST: the key is missing, wrong or revoked; set PAWGATE_KEY to a valid key and start again (it says: "unauthorized")`,
			errorData{Reason: "unauthenticated", HTTPStatus: 401}},
		{"wrong key, JSON-RPC", "application/json", 401, [2]string{}, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"unknown key"}}`,
			`HTTP 401 Unauthorized from HOST: the key is missing, wrong or revoked; set PAWGATE_KEY to a valid key and start again (it says: "unknown key")`,
			errorData{Reason: "unauthenticated", HTTPStatus: 401}},
		{"forbidden", "", 403, [2]string{}, "", `HTTP 403 Forbidden from HOST: this key may not use this endpoint`,
			errorData{Reason: "forbidden", HTTPStatus: 403}},
		{"wrong path", "text/plain", 404, [2]string{}, "404 page not found\n",
			`HTTP 404 Not Found from HOST: no MCP endpoint there; PAWGATE_URL must be its whole address, usually ending in /mcp (it says: "404 page not found")`,
			errorData{Reason: "not_found", HTTPStatus: 404}},
		{"too large", "", 413, [2]string{}, "", `HTTP 413 Request Entity Too Large from HOST: the message is too large for the endpoint`,
			errorData{Reason: "too_large", HTTPStatus: 413}},
		{"flood, seconds", "text/plain", 429, [2]string{"Retry-After", "12"}, "",
			`HTTP 429 Too Many Requests from HOST: too many requests, try again in 12 s`,
			errorData{Reason: "rate_limited", HTTPStatus: 429, RetryAfterMS: 12000}},
		{"flood, date", "text/plain", 429, [2]string{"Retry-After", "Tue, 01 Dec 2026 10:01:30 GMT"}, "",
			`HTTP 429 Too Many Requests from HOST: too many requests, try again in 90 s`,
			errorData{Reason: "rate_limited", HTTPStatus: 429, RetryAfterMS: 90000}},
		{"flood, date past", "text/plain", 429, [2]string{"Retry-After", "Tue, 01 Dec 2026 09:00:00 GMT"}, "",
			`HTTP 429 Too Many Requests from HOST: too many requests`, errorData{Reason: "rate_limited", HTTPStatus: 429}},
		{"flood, negative", "text/plain", 429, [2]string{"Retry-After", "-5"}, "",
			`HTTP 429 Too Many Requests from HOST: too many requests`, errorData{Reason: "rate_limited", HTTPStatus: 429}},
		{"database away", "text/plain", 503, [2]string{"Retry-After", "1"}, "",
			`HTTP 503 Service Unavailable from HOST: the router is not available just now, try again in 1 s`,
			errorData{Reason: "unavailable", HTTPStatus: 503, RetryAfterMS: 1000}},
		{"bad version header, text", "text/plain", 400, [2]string{}, "Bad Request: Unsupported protocol version\n",
			`HTTP 400 Bad Request from HOST: the request was refused (it says: "Bad Request: Unsupported protocol version")`,
			errorData{Reason: "http_error", HTTPStatus: 400}},
		{"redirect", "text/html", 307, [2]string{"Location", "https://user:pw@evil.example/mcp?k=v"}, "",
			`HTTP 307 Temporary Redirect from HOST: redirects are not followed, because the key would travel along; it points to https://evil.example/mcp`,
			errorData{Reason: "redirected", HTTPStatus: 307}},
		{"a request answered 202", "", 202, [2]string{}, "",
			`HTTP 202 Accepted from HOST: the request was accepted but not answered`, errorData{Reason: "bad_answer", HTTPStatus: 202}},
		{"a web page", "text/html", 200, [2]string{}, "<h1>It\x1b[31m works</h1> &lt;b&gt;" + strings.Repeat("!", 300),
			`HTTP 200 OK from HOST: the answer is not a JSON-RPC message (it says: "It [31m works <b>` + strings.Repeat("!", 160-17) + `…")`,
			errorData{Reason: "bad_answer", HTTPStatus: 200}},
		{"the key in the page", "text/plain", 400, [2]string{}, "bad header: Bearer " + testKey,
			`HTTP 400 Bad Request from HOST: the request was refused (it says: "bad header: Bearer [key]")`,
			errorData{Reason: "http_error", HTTPStatus: 400}},
		{"JSON but not JSON-RPC", "application/json", 200, [2]string{}, `[1,2]`,
			`HTTP 200 OK from HOST: the answer is not a JSON-RPC message (it says: "[1,2]")`, errorData{Reason: "bad_answer", HTTPStatus: 200}},
		{"a result for another", "application/json", 200, [2]string{}, `{"jsonrpc":"2.0","id":8,"result":{"secret":1}}`,
			`HOST answered with the id of another request`, errorData{Reason: "bad_answer"}},
		{"an empty stream", "text/event-stream", 200, [2]string{}, ": hello\n\n",
			`the answer stream of HOST ended before the answer; whether the call took effect is not known; it was not sent again`,
			errorData{Reason: "outcome_unknown", HTTPStatus: 200}},
		{"a stream cut in its answer", "text/event-stream", 200, [2]string{}, `data: {"jsonrpc":"2.0","id":7,"resu`,
			`the answer stream of HOST ended before the answer; whether the call took effect is not known; it was not sent again`,
			errorData{Reason: "outcome_unknown", HTTPStatus: 200}},
		{"answer too long", "application/json", 200, [2]string{}, `{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 5000) + `"}`,
			`the answer is longer than 4096 bytes, ask for less`, errorData{Reason: "too_large"}},
		{"event too long", "text/event-stream", 200, [2]string{}, `data: {"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 5000) + `"}` + "\n\n",
			`the answer is longer than 4096 bytes, ask for less`, errorData{Reason: "too_large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				w.Header().Set("Content-Type", tt.kind)
				if tt.header[0] != "" {
					w.Header().Set(tt.header[0], tt.header[1])
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			defer srv.Close()
			s := start(t, Options{URL: srv.URL + "/mcp", Key: testKey, MaxAnswer: 4096, Now: func() time.Time { return now }})
			s.send(call1("7", "tools/call"))
			var got wireError
			line := s.recv()
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatal(err)
			}
			host := strings.TrimPrefix(srv.URL, "http://")
			if diff := cmp.Diff(strings.ReplaceAll(tt.text, "HOST", host), got.Error.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.data, got.Error.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if string(got.ID) != "7" || got.Error.Code != -32603 {
				t.Errorf("id %s, code %d; want 7, -32603", got.ID, got.Error.Code)
			}
			// The same answer to a notification is for the log only.
			s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			s.wantEnd()
			if posts.Load() != 2 {
				t.Errorf("POSTs = %d, want each message once, 2", posts.Load())
			}
			if strings.Contains(line+s.log.String(), testKey) {
				t.Error("the key was written out")
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := ln.Addr().String()
	ln.Close()
	s := start(t, Options{URL: "http://" + host + "/mcp", Key: testKey})
	s.send(call1("7", "tools/call"))
	s.want(`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"cannot reach ` + host +
		`: connection refused; nothing was sent, check PAWGATE_URL and that the router is up","data":{"reason":"endpoint_unreachable"}}}`)
	s.wantEnd()
}

// A server that takes the request and drops the connection may have done the
// call: it is asked once, and the error says so.
func TestLostAnswerIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s, srv := bridge(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if posts.Add(1) == 1 {
			fmt.Fprint(w, ok("1"))
			return
		}
		panic(http.ErrAbortHandler)
	})
	s.send(call1("1", "tools/call"))
	s.want(ok("1"))
	s.send(call1("2", "tools/call")) // over the connection kept from the first
	s.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the connection to ` + strings.TrimPrefix(srv.URL, "http://") +
		` ended before the answer; whether the call took effect is not known; it was not sent again","data":{"reason":"outcome_unknown"}}}`)
	s.wantEnd()
	if posts.Load() != 2 {
		t.Errorf("POSTs = %d, want 2", posts.Load())
	}
}

// Over HTTP, dropping the POST is what ends the handler's context.
func TestBridgeCancelled(t *testing.T) {
	t.Parallel()
	t.Run("MCP-25 running call", func(t *testing.T) {
		t.Parallel()
		gone, began := make(chan struct{}), make(chan struct{})
		s, _ := bridge(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			close(began)
			<-r.Context().Done()
			close(gone)
		})
		s.send(call1("1", "tools/call"))
		<-began
		s.send(cancelOf("1"))
		<-gone
		s.wantEnd()
	})
}

// What a server says is never opened, fetched, followed or run; TestImports
// adds that nothing here could run it.
func TestServerCannotSendUsAnywhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 301, 302, 303, 307, 308} {
		t.Run(fmt.Sprintf("CVE-2025-6514 HTTP %d", status), func(t *testing.T) {
			t.Parallel()
			var elsewhere atomic.Int64
			trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { elsewhere.Add(1) }))
			t.Cleanup(trap.Close)
			requests := make(chan string, 16)
			s, _ := bridge(t, func(w http.ResponseWriter, r *http.Request) {
				requests <- r.Method + " " + r.URL.Path
				w.Header().Set("Location", trap.URL)
				w.Header().Set("Refresh", "0; url="+trap.URL)
				w.Header().Set("Mcp-Session-Id", "s1")
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+trap.URL+`/$(touch pwned)"`)
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"authorization_endpoint":"%s/$(id)"}`, trap.URL)
			})
			s.send(call1("1", "initialize"))
			s.recv()
			s.wantEnd()
			if first := <-requests; first != "POST /mcp" || len(requests) > 0 {
				t.Errorf("requests: %s and %d more, want the one POST", first, len(requests))
			}
			if elsewhere.Load() != 0 {
				t.Errorf("the address in the answer was visited %d times", elsewhere.Load())
			}
		})
	}
}

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	clear := func(host string) string {
		return "PAWGATE_URL uses http:// to " + host + ", which would send the key in clear; use https:// (http:// is for this machine only)"
	}
	const shape = "PAWGATE_URL is not an address; give it like https://example.com/mcp"
	tests := []struct{ name, url, key, wantErr string }{
		{"https", "https://router.example/prod/mcp", testKey, ""},
		{"space around", " https://router.example/mcp\n", testKey + "\n", ""},
		{"this machine", "http://127.0.0.1:8080/mcp", testKey, ""},
		{"this machine by name", "http://LocalHost:8080/mcp", testKey, ""},
		{"this machine, IPv6", "http://[::1]:8080/mcp", testKey, ""},
		{"this machine, mapped", "http://[::ffff:127.0.0.1]:8080/mcp", testKey, ""},
		{"clear text", "http://router.example/mcp", testKey, clear("router.example")},
		{"clear text, no key", "http://router.example/mcp", "", clear("router.example")},
		{"clear text, private address", "http://10.0.0.5/mcp", testKey, clear("10.0.0.5")},
		{"name that begins like loopback", "http://127.0.0.1.evil.example/mcp", testKey, clear("127.0.0.1.evil.example")},
		{"name that ends like loopback", "http://evil-localhost/mcp", testKey, clear("evil-localhost")},
		{"odd spelling", "http://127.1/mcp", testKey, clear("127.1")},
		{"any address", "http://0.0.0.0:8080/mcp", testKey, clear("0.0.0.0")},
		{"unset", "", testKey, "PAWGATE_URL is not set; give the router's address, like https://example.com/mcp"},
		{"no scheme", "router.example/mcp", testKey, shape},
		{"not an address", "https://a b/", testKey, shape},
		{"no host", "https:///mcp", testKey, shape},
		{"another scheme", "file://localhost/etc/passwd", testKey, "PAWGATE_URL must begin with https://"},
		{"password inside", "https://me:" + testKey + "@router.example/mcp", "", "PAWGATE_URL must not contain a user or password; put the key into PAWGATE_KEY"},
		{"line break in the key", "https://router.example/mcp", "paw_a\r\nX: y", "PAWGATE_KEY holds characters that no key has; copy it again"},
		{"typographic key", "https://router.example/mcp", "“paw_a”", "PAWGATE_KEY holds characters that no key has; copy it again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := Run(t.Context(), Options{In: strings.NewReader(""), Out: io.Discard, URL: tt.url, Key: tt.key})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.wantErr, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if err := Run(t.Context(), Options{Transport: InProcess(http.NotFoundHandler())}); err == nil {
		t.Error("no input and no output: no error")
	}
}
