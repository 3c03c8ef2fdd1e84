package router

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// FunctionURL adapts a handler to a Function URL with invoke mode
// RESPONSE_STREAM: the second form of deployment, for answers that take longer
// than an HTTP API allows and for progress as it happens. Headers leave with
// the first byte; every answer has a body, because a stream without one
// becomes a 502.
func FunctionURL(h http.Handler) func(context.Context, events.APIGatewayV2HTTPRequest) (*events.LambdaFunctionURLStreamingResponse, error) {
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (*events.LambdaFunctionURLStreamingResponse, error) {
		ctx, release := beforeEnd(ctx)
		req, err := gatewayRequest(ctx, event)
		if err != nil {
			release()
			return &events.LambdaFunctionURLStreamingResponse{StatusCode: http.StatusBadRequest,
				Headers: map[string]string{"Content-Type": "application/json"},
				Body:    strings.NewReader(`{"error":"bad_request","error_description":"the request could not be read"}`)}, nil
		}
		body, w := newStream()
		go func() {
			defer release()
			defer func() {
				if p := recover(); p != nil { // the router recovers its own; this keeps the process
					slog.Error("panic in stream", "panic", p)
					w.WriteHeader(http.StatusInternalServerError)
				}
				w.close()
			}()
			h.ServeHTTP(w, req)
		}()
		<-w.started
		return &events.LambdaFunctionURLStreamingResponse{StatusCode: w.status, Headers: joined(w.sent), Cookies: w.cookies, Body: body}, nil
	}
}

// stream is a ResponseWriter whose body is read while it is written.
type stream struct {
	header  http.Header
	pipe    *io.PipeWriter
	started chan struct{} // closed once status, sent and cookies are final

	status  int
	sent    http.Header
	cookies []string
	wrote   bool
}

func newStream() (io.Reader, *stream) {
	r, w := io.Pipe()
	return r, &stream{header: http.Header{}, pipe: w, started: make(chan struct{})}
}

func (s *stream) Header() http.Header { return s.header }

func (s *stream) WriteHeader(status int) {
	if s.status != 0 {
		return
	}
	s.status, s.sent = status, s.header.Clone()
	s.cookies = s.sent.Values("Set-Cookie")
	s.sent.Del("Set-Cookie")
	close(s.started)
}

func (s *stream) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.wrote = s.wrote || len(p) > 0
	return s.pipe.Write(p)
}

// Flush does nothing: every write is on its way at once.
func (s *stream) Flush() {}

func (s *stream) close() {
	s.WriteHeader(http.StatusOK)
	if !s.wrote {
		_, _ = s.pipe.Write([]byte("\n"))
	}
	_ = s.pipe.Close()
}

func joined(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		out[name] = strings.Join(h[name], ", ")
	}
	return out
}
