package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stage is an endpoint whose calls of method "hold" wait until released or
// cancelled, and which tells what happened.
type stage struct {
	free      chan struct{}
	running   atomic.Int64
	peak      atomic.Int64
	started   atomic.Int64
	cancelled atomic.Int64
}

func newStage() *stage { return &stage{free: make(chan struct{})} }

func (g *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object, _ := members(body)
	if text(object["method"]) == "hold" {
		g.started.Add(1)
		now := g.running.Add(1)
		defer g.running.Add(-1)
		for peak := g.peak.Load(); now > peak && !g.peak.CompareAndSwap(peak, now); peak = g.peak.Load() {
		}
		select {
		case <-g.free:
		case <-r.Context().Done():
			g.cancelled.Add(1)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if object["id"] == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Write(withID(object["id"], "result", []byte(`{}`)))
}

func ok(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"test"}}`
}

func TestSlowCallDoesNotBlockFastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage()
		s := start(t, local(g.ServeHTTP))
		s.send(call1("1", "hold"), call1("2", "ping"))
		s.want(ok("2"))
		close(g.free)
		s.want(ok("1"))
		s.wantEnd()
	})
}

func TestCancelled(t *testing.T) {
	tests := []struct {
		name      string
		lines     []string // sent at once, with nothing awaited between them
		cancelled int64
		answers   []string // once everything is released
	}{
		{"MCP-25 running call", []string{call1("1", "hold"), "wait", cancelOf("1")}, 1, nil},
		{"MCP-25 read right behind its call", []string{call1("1", "hold"), cancelOf("1")}, -1, nil},
		{"MCP-25 unknown id", []string{call1("1", "hold"), "wait", cancelOf("2")}, 0, []string{ok("1")}},
		{"MCP-25 finished id", []string{call1("1", "ping"), "wait", cancelOf("1"), call1("1", "hold")}, 0, []string{ok("1"), ok("1")}},
		{"string is not number", []string{call1(`"1"`, "hold"), "wait", cancelOf("1")}, 0, []string{ok(`"1"`)}},
		{"number is not string", []string{call1("1", "hold"), "wait", cancelOf(`"1"`)}, 0, []string{ok("1")}},
		{"to the last digit", []string{call1("9007199254740993", "hold"), call1("9007199254740992", "hold"), "wait", cancelOf("9007199254740993")},
			1, []string{ok("9007199254740992")}},
		{"a string written another way", []string{call1(`"a/b"`, "hold"), "wait", cancelOf(`"a\/b"`)}, 1, nil},
		{"one of two", []string{call1("1", "hold"), call1("2", "hold"), "wait", cancelOf("1")}, 1, []string{ok("2")}},
		{"an id used twice cancels both", []string{call1("1", "hold"), call1("1", "hold"), "wait", cancelOf("1")}, 2, nil},
		{"without params", []string{call1("1", "hold"), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`}, 0, []string{ok("1")}},
		{"without requestId", []string{call1("1", "hold"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`}, 0, []string{ok("1")}},
		{"in another case is not it", []string{call1("1", "hold"), strings.Replace(cancelOf("1"), "requestId", "RequestID", 1)}, 0, []string{ok("1")}},
		{"a reply's id is not a request's", []string{call1("1", "hold"), `{"jsonrpc":"2.0","id":2,"result":{}}`, "wait", cancelOf("2")}, 0, []string{ok("1")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newStage()
				s := start(t, local(g.ServeHTTP))
				for _, line := range tt.lines {
					if line == "wait" {
						synctest.Wait()
						continue
					}
					s.send(line)
				}
				synctest.Wait()
				// Behind its call a cancellation may come before or after the
				// POST: either way no call is left running.
				if tt.cancelled >= 0 && g.cancelled.Load() != tt.cancelled {
					t.Errorf("handlers whose context ended = %d, want %d", g.cancelled.Load(), tt.cancelled)
				}
				if want := int64(len(tt.answers)); g.running.Load() > want {
					t.Errorf("handlers running = %d, want at most %d", g.running.Load(), want)
				}
				close(g.free)
				rest, err := s.end()
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.answers, rest); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestNothingFollowsACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
			<-r.Context().Done()
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
		}))
		s.send(call1("1", "tools/call"))
		s.want(`{"jsonrpc":"2.0","method":"notifications/message"}`)
		s.send(cancelOf("1"))
		s.wantEnd()
	})
}

func TestInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage()
		o := local(g.ServeHTTP)
		o.InFlight = 4
		s := start(t, o)
		for i := range 20 {
			s.send(call1(strconv.Itoa(i), "hold"))
			synctest.Wait() // so that 0 to 3 are the running ones
		}
		if got := g.running.Load(); got != 4 {
			t.Errorf("running = %d, want 4", got)
		}
		// All places are taken and sixteen wait, yet cancellations are read: of
		// a running call, whose place the next one gets, and of a waiting one,
		// which is never sent.
		s.send(cancelOf("0"), cancelOf("1"), cancelOf("2"), cancelOf("3"), cancelOf("19"))
		synctest.Wait()
		if got := g.cancelled.Load(); got != 4 {
			t.Errorf("cancelled = %d, want the running ones, 4", got)
		}
		if got := g.running.Load(); got != 4 {
			t.Errorf("running after the cancellations = %d, want 4", got)
		}
		close(g.free)
		rest, err := s.end()
		if err != nil || len(rest) != 15 {
			t.Errorf("got %d answers (error %v), want 15: %q", len(rest), err, rest)
		}
		if g.peak.Load() != 4 || g.started.Load() != 19 { // a place is free once its handler is gone
			t.Errorf("peak = %d, started = %d; want 4 and all but the waiting one that was cancelled, 19", g.peak.Load(), g.started.Load())
		}
	})
}

func TestReadingAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage()
		o := local(g.ServeHTTP)
		o.InFlight, o.ReadAhead = 1, 1<<20
		s := start(t, o)
		pad := strings.Repeat("x", 64<<10)
		var sent atomic.Int64
		go func() {
			for i := range 60 {
				line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hold","params":"%s"}`, i, pad)
				if _, err := io.WriteString(s.in, line+"\n"); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		// One message is in flight, one is held by the reader.
		if got := int(sent.Load()-2) * len(pad); got > o.ReadAhead || got < o.ReadAhead/2 {
			t.Errorf("read %d bytes ahead, want at most %d and not much less", got, o.ReadAhead)
		}
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
	})
}

func TestHandshakeKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string // only one request at a time may be here
		release := make(chan struct{})
		s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			object, _ := members(body)
			order = append(order, text(object["method"])+" "+r.Header.Get("Mcp-Protocol-Version"))
			if text(object["method"]) == "initialize" {
				<-release
				w.Write(withID(object["id"], "result", []byte(`{"protocolVersion":"2025-06-18"}`)))
				return
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		synctest.Wait()
		if diff := cmp.Diff([]string{"initialize "}, order); diff != "" {
			t.Errorf("sent before the handshake ended (-want +got):\n%s", diff)
		}
		close(release)
		s.want(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}`)
		synctest.Wait()
		if diff := cmp.Diff([]string{"initialize ", "notifications/initialized 2025-06-18"}, order); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		s.wantEnd()
	})
}

// The stream of initialize may stay open after its answer; the handshake is
// over with the answer.
func TestHandshakeOpensWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if id := requestID(body); string(id) == "0" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", ok("0"))
				<-r.Context().Done()
				return
			}
			echo(w, r)
		}))
		began := time.Now()
		s.send(call1("0", "initialize"), call1("1", "ping"))
		s.want(ok("0"))
		s.recv()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the call behind the handshake waited %s, want 0", waited)
		}
		s.wantEnd()
		if waited := time.Since(began); waited != linger {
			t.Errorf("the open stream was ended after %s, want %s", waited, linger)
		}
	})
}

func TestEndOfInput(t *testing.T) {
	t.Run("waits for the answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(20 * time.Second)
				echo(w, r)
			}))
			s.send(call1("1", "tools/call"))
			rest, err := s.end()
			if diff := cmp.Diff([]string{echoed("1", call1("1", "tools/call"))}, rest); diff != "" || err != nil {
				t.Errorf("error %v, answers (-want +got):\n%s", err, diff)
			}
		})
	})
	t.Run("not for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newStage()
			o := local(g.ServeHTTP)
			o.InFlight, o.Drain = 1, 5*time.Second
			s := start(t, o)
			s.send(call1("1", "hold"), call1("2", "hold"))
			synctest.Wait()
			began := time.Now()
			rest, err := s.end()
			if err == nil || !strings.Contains(err.Error(), "2 calls unanswered 5s after the input ended") {
				t.Errorf("error = %v, want it to count the unanswered calls", err)
			}
			if waited := time.Since(began); waited != 5*time.Second {
				t.Errorf("waited %s, want 5s", waited)
			}
			if len(rest) != 2 || !strings.Contains(strings.Join(rest, ""), "no answer within 5s after the input ended") {
				t.Errorf("got %q, want an error for each call", rest)
			}
		})
	})
	t.Run("read error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, local(echo))
			s.send(call1("1", "ping"))
			s.recv()
			s.in.CloseWithError(errors.New("disk on fire"))
			if err := <-s.done; err == nil || err.Error() != "read message: disk on fire" {
				t.Errorf("error = %v", err)
			}
		})
	})
}

// A signal ends the context: nothing is waited for, nothing more is written,
// and running handlers are told.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage()
		s := start(t, local(g.ServeHTTP))
		s.send(call1("0", "hold"), call1("1", "hold"))
		synctest.Wait()
		began := time.Now()
		s.stop()
		if err := <-s.done; err != nil {
			t.Errorf("error = %v, want none", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("stopping took %s, want 0", took)
		}
		if line, ok := <-s.out; ok {
			t.Errorf("wrote %s after the signal", line)
		}
		if g.cancelled.Load() != 2 {
			t.Errorf("cancelled handlers = %d, want 2", g.cancelled.Load())
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		o := local(echo)
		o.In, o.Out = r, brokenPipe{}
		done := make(chan error, 1)
		go func() { done <- Run(context.Background(), o) }()
		io.WriteString(w, call1("1", "ping")+"\n")
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("error = %v, want the write's", err)
		}
		if _, err := w.Write([]byte("x\n")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("input still open: %v", err)
		}
	})
}
