package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func post(t *testing.T, ctx context.Context, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp?a=b", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test", "1")
	return req
}

func TestInProcessRequest(t *testing.T) {
	t.Parallel()
	req := post(t, t.Context(), "hello")
	resp, err := InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // the first one stands
		w.Header().Set("Content-Type", "too/late")
		fmt.Fprint(w, r.Method, " ", r.URL, " ", r.RequestURI, " ", r.Host, " ", r.RemoteAddr, " ", r.Header.Get("X-Test"), " ", string(body))
	})).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("POST /mcp?a=b /mcp?a=b localhost 127.0.0.1:0 1 hello", string(body)); diff != "" {
		t.Errorf("the handler saw (-want +got):\n%s", diff)
	}
	if resp.StatusCode != http.StatusTeapot || resp.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %s, %v", resp.Status, resp.Header)
	}
	if req.URL.Host != "localhost" || req.RequestURI != "" {
		t.Errorf("the request was changed: %+v", req)
	}
}

func TestInProcessEnds(t *testing.T) {
	wait := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := []struct {
		name    string
		handler http.HandlerFunc
		use     func(resp *http.Response, cancel context.CancelFunc)
		wantErr bool
	}{
		{"writes nothing", func(http.ResponseWriter, *http.Request) {}, func(resp *http.Response, _ context.CancelFunc) {
			if b, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || len(b) > 0 || err != nil {
				t.Errorf("got %d, %q, %v", resp.StatusCode, b, err)
			}
		}, false},
		{"caller gives up before the headers", wait, nil, true},
		{"body closed in the stream", func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			wait(w, r)
		}, func(resp *http.Response, _ context.CancelFunc) { resp.Body.Close() }, false},
		{"caller gives up in the stream", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			wait(w, r)
		}, func(resp *http.Response, cancel context.CancelFunc) {
			time.AfterFunc(time.Second, cancel)
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
				t.Errorf("reading gave %v, want the context's error", err)
			}
		}, false},
		{"writes to nobody", func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
			}
		}, func(resp *http.Response, _ context.CancelFunc) { resp.Body.Close() }, false},
		{"writes when nobody waited for it", func(w http.ResponseWriter, r *http.Request) {
			wait(w, r)
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("writing succeeded after the caller left")
			}
		}, nil, true},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("secret") }, nil, true},
		{"panics in the stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("x"))
			panic("secret")
		}, func(resp *http.Response, _ context.CancelFunc) {
			var panicked *panicError
			if _, err := io.ReadAll(resp.Body); !errors.As(err, &panicked) {
				t.Errorf("reading gave %v, want the panic", err)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// The bubble fails when the handler's goroutine outlives the test.
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.use == nil {
					time.AfterFunc(time.Second, cancel)
				}
				resp, err := InProcess(tt.handler).RoundTrip(post(t, ctx, ""))
				if (err != nil) != tt.wantErr {
					t.Fatalf("error = %v, want one: %t", err, tt.wantErr)
				}
				if err != nil {
					return
				}
				defer resp.Body.Close()
				tt.use(resp, cancel)
			})
		})
	}
}

// MCP-26: debug logging on and a handler that panics, before and after its
// headers: stdout carries protocol only, and the panic's text goes nowhere but
// to the log, where only the type of its value appears.
func TestPanicInHandler(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "application/json", "text/event-stream"} {
		t.Run("MCP-26 "+kind, func(t *testing.T) {
			t.Parallel()
			s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(requestID(body)) == "2" {
					fmt.Fprint(w, ok("2"))
					return
				}
				if kind != "" {
					w.Header().Set("Content-Type", kind)
					io.WriteString(w, "data: x\n")
				}
				panic("hunter2")
			}))
			s.send(call1("1", "tools/call"))
			s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error, see the log of the server","data":{"reason":"internal"}}}`)
			s.send(call1("2", "tools/call"))
			s.want(ok("2"))
			s.wantEnd()
			if log := s.log.String(); !strings.Contains(log, "panic with a string") || !strings.Contains(log, "inprocess_test.go") || strings.Contains(log, "hunter2") {
				t.Errorf("log = %s", log)
			}
		})
	}
}

// Every way a session can end leaves nothing running (complaints, row 59:
// sessions that never end). Not parallel: it counts goroutines.
func TestComplaint59NoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 200 {
		g := newStage()
		s := start(t, local(g.ServeHTTP))
		s.send(call1("0", "initialize"), call1("1", "ping"), call1("2", "hold"), call1("3", "hold"), cancelOf("3"))
		s.recv()
		s.recv()
		if i%2 == 0 {
			close(g.free)
			if _, err := s.end(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s.stop()
		if err := <-s.done; err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		stacks := make([]byte, 1<<20)
		t.Errorf("goroutines: %d before, %d after 200 sessions\n%s", before, after, stacks[:runtime.Stack(stacks, true)])
	}
}
