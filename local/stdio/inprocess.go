package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// InProcess makes a handler of this process an endpoint. Each request runs on a
// goroutine of its own and its body is handed over as it is written, so event
// streams arrive event by event. The request's context ends when the caller's
// does, when the response body is closed, and when the handler returns. Whoever
// gives up on a call waits for its handler for up to handlerGrace, so that a
// place is free, and the process may end, only when the handler has put its
// affairs in order; a handler that ignores its context longer than that keeps
// its goroutine until it returns.
//
// A panic is no crash: it becomes an error of the transport, which the pump
// logs with its stack and answers without its text.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

// handlerGrace is shorter than grace: the pump waits for its calls, and they
// for their handlers.
const handlerGrace = time.Second

type inProcess struct{ h http.Handler }

func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	r, w := io.Pipe()
	rw := &responseWriter{header: http.Header{}, body: w, ready: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := serve(t.h, rw, serverRequest(ctx, req))
		if err == nil {
			// A response cut short by its caller is no complete one.
			err = context.Cause(req.Context())
		}
		rw.finish(err)
		cancel()
	}()
	// The caller going away must free both ends of the pipe: the handler may be
	// writing and the caller may be reading.
	detach := context.AfterFunc(req.Context(), func() { w.CloseWithError(context.Cause(req.Context())) })
	body := &responseBody{PipeReader: r, ended: ended, release: func() { detach(); cancel() }}
	select {
	case <-rw.ready:
	case <-ctx.Done():
		// Ended before or after the handler committed: ready tells which.
		<-rw.settled(context.Cause(ctx))
	}
	if err := cmp.Or(rw.err, context.Cause(req.Context())); err != nil {
		body.Close()
		return nil, err
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", rw.status, http.StatusText(rw.status)),
		StatusCode: rw.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        rw.sent,
		ContentLength: -1,
		Body:          body,
		Request:       req,
	}, nil
}

// serverRequest is the request as a server would see it.
func serverRequest(ctx context.Context, req *http.Request) *http.Request {
	in := req.Clone(ctx)
	in.RequestURI = req.URL.RequestURI()
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	in.URL.Scheme, in.URL.Host = "", ""
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// serve calls the handler and turns its panic into an error.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer r.Body.Close()
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// panicError is a handler's panic. Its text names only the type of a value that
// is not the runtime's own: others may hold anything, and texts get logged.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	var own runtime.Error
	if err, ok := e.value.(error); ok && errors.As(err, &own) {
		return own.Error()
	}
	return fmt.Sprintf("panic with a %T", e.value)
}

// responseWriter gives the response out at the first WriteHeader, Write or
// Flush; like net/http's, the first status stands.
type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	ready  chan struct{} // closed once status and sent, or err, are set

	status int
	sent   http.Header
	err    error
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(status int) {
	if status < 200 {
		return // informational: nothing of it reaches the caller
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush has nothing to push: what is written has been read.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// settled makes err the outcome unless there is one already.
func (w *responseWriter) settled(err error) <-chan struct{} {
	w.once.Do(func() {
		w.err = err
		close(w.ready)
	})
	return w.ready
}

// finish ends the response after the handler.
func (w *responseWriter) finish(err error) {
	if err != nil {
		w.settled(err)
	}
	w.WriteHeader(http.StatusOK)
	w.body.CloseWithError(err)
}

// responseBody cancels the request when it is closed.
type responseBody struct {
	*io.PipeReader
	ended   <-chan struct{} // closed when the handler has returned
	release func()
}

func (b *responseBody) Close() error {
	err := b.PipeReader.Close()
	b.release()
	select {
	case <-b.ended:
	case <-time.After(handlerGrace):
	}
	return err
}
