// Package channeltest is a stand-in for a messaging platform's server that
// can fail in every way a real one does. What the platform answers when it
// works is the platform's own test's business.
package channeltest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"pawgate/internal/client/channel"
)

// Mishap is what happens to a request.
type Mishap string

// The mishaps. The last three let the platform take the message first.
const (
	None      Mishap = ""
	Away      Mishap = "away"       // 503 before anything is done
	Limited   Mishap = "limited"    // 429, as Server.Limit answers it
	Broken    Mishap = "broken"     // 500 before anything is done, which the sender cannot know
	Reset     Mishap = "reset"      // the connection dies before anything is done
	LateReset Mishap = "late_reset" // the connection dies after it is done
	LateBreak Mishap = "late_break" // 500 after it is done
	Silence   Mishap = "silence"    // done, but no answer until the sender gives up
)

// Request is one that arrived, with its body read.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte
}

// Server is the stand-in.
type Server struct {
	URL string
	// Next decides the mishap of a request; nil: none. Once requests were made
	// it is changed by Then.
	Next func(Request) Mishap
	// Limit answers a 429; nil: a bare one.
	Limit http.HandlerFunc

	mu       sync.Mutex
	requests []Request
}

// New serves a platform until the test ends.
func New(t testing.TB, platform http.HandlerFunc) *Server {
	s := &Server{}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		request := Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
		s.mu.Lock()
		s.requests = append(s.requests, request)
		mishap := None
		if s.Next != nil {
			mishap = s.Next(request)
		}
		s.mu.Unlock()
		s.answer(mishap, platform, w, r, done)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) }) // runs first: lets go of silent answers
	s.URL = server.URL
	return s
}

func (s *Server) answer(mishap Mishap, platform http.HandlerFunc, w http.ResponseWriter, r *http.Request, done chan struct{}) {
	switch mishap {
	case None:
		platform(w, r)
	case Away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case Broken:
		w.WriteHeader(http.StatusInternalServerError)
	case Limited:
		if s.Limit != nil {
			s.Limit(w, r)
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
	case Reset:
		panic(http.ErrAbortHandler)
	default:
		platform(httptest.NewRecorder(), r)
		switch mishap {
		case LateBreak:
			w.WriteHeader(http.StatusInternalServerError)
		case Silence:
			select {
			case <-r.Context().Done():
			case <-done:
			}
		}
		if mishap != LateBreak {
			panic(http.ErrAbortHandler)
		}
	}
}

// Then replaces Next.
func (s *Server) Then(next func(Request) Mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Next = next
}

// Requests are all that arrived, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// In turns a list of mishaps into Next: one for each request, then none.
func In(mishaps ...Mishap) func(Request) Mishap {
	return func(Request) Mishap {
		if len(mishaps) == 0 {
			return None
		}
		m := mishaps[0]
		mishaps = mishaps[1:]
		return m
	}
}

// Failure is the channel.Error that a send came to. It must not tell a secret.
func Failure(t testing.TB, err error, secrets ...string) *channel.Error {
	t.Helper()
	var e *channel.Error
	if !errors.As(err, &e) {
		t.Fatalf("want a channel.Error, got %v", err)
	}
	for _, s := range secrets {
		if strings.Contains(err.Error(), s) {
			t.Fatalf("the error tells a secret: %v", err)
		}
	}
	return e
}
