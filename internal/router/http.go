package router

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

type requestIDKey struct{}

// requestID is the id of the request that a context belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identify gives the request an id, tells it to the client, and keeps it for
// logs and audit. An id sent by the client is never taken over: it could
// imitate another request's.
func (r *Router) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		id, ctx := withRequestID(req.Context())
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

func withRequestID(ctx context.Context) (string, context.Context) {
	id := strings.ToLower(rand.Text()[:20])
	return id, context.WithValue(ctx, requestIDKey{}, id)
}

// recoverPanics keeps one broken request from ending the process. The panic's
// text goes to the log only.
func (r *Router) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				id := w.Header().Get("X-Request-Id")
				r.Log.Error("panic in router", "request_id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				rpcErrorf(codeInternal, "internal error; the operator finds it in the log under request %s", id).
					reason(fault.Internal).write(w, http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, req)
	})
}

// guardHost refuses requests that a web page made: by DNS rebinding (a Host
// that is not ours) or across sites (a foreign Origin). MCP 2025-11-25,
// Streamable HTTP, Security Warning.
func (r *Router) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch origin := req.Header.Get("Origin"); {
		case r.Resource.Serves(req.URL.Path): // public by nature, and read by browsers first
			next.ServeHTTP(w, req)
		case len(r.AllowedHosts) > 0 && !hostAllowed(r.AllowedHosts, req.Host):
			writeError(w, http.StatusForbidden, "host_not_allowed", "this Host is not served; the operator sets PAWGATE_ALLOWED_HOSTS")
		case len(req.Header.Values("Origin")) > 0 && !slices.Contains(r.AllowedOrigins, origin) && !r.sameOrigin(req, origin) &&
			!(r.approvalPage(req) && origin == r.Cards.Links.Origin()): // the form of a page that was served under the public URL
			writeError(w, http.StatusForbidden, "origin_not_allowed", "this Origin may not call; the operator sets PAWGATE_ALLOWED_ORIGINS")
		default:
			next.ServeHTTP(w, req)
		}
	})
}

// sameOrigin: a page that this very host served, under a name that is allowed
// by list. Without a list the name proves nothing: it may have been rebound.
func (r *Router) sameOrigin(req *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && len(r.AllowedHosts) > 0 && u.Host != "" && strings.EqualFold(u.Host, req.Host)
}

// hostAllowed compares with and without the port.
func hostAllowed(allowed []string, host string) bool {
	host = strings.ToLower(host)
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	return slices.Contains(allowed, host) || slices.Contains(allowed, name)
}

// limitBody refuses by the stated length, and cuts what is longer than stated.
func (r *Router) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ContentLength > r.MaxBody {
			tooLarge(w, r.MaxBody)
			return
		}
		req.Body = http.MaxBytesReader(w, req.Body, r.MaxBody)
		next.ServeHTTP(w, req)
	})
}

func tooLarge(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close") // the rest is not read as a new request
	rpcErrorf(codeInvalidRequest, "the body is larger than %d bytes", limit).reason(fault.TooLarge).
		write(w, http.StatusRequestEntityTooLarge)
}

func readBody(w http.ResponseWriter, req *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(req.Body)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		tooLarge(w, over.Limit)
	case err != nil:
		rpcErrorf(codeParse, "the body ended before its stated length").write(w, http.StatusBadRequest)
	}
	return body, err == nil
}

// guardMethod: a stateless server has no stream to offer on GET and no
// session to end on DELETE (MCP 2025-11-25, Streamable HTTP).
func guardMethod(w http.ResponseWriter, req *http.Request) bool {
	if req.Method == http.MethodPost {
		return true
	}
	w.Header().Set("Allow", http.MethodPost)
	writeError(w, http.StatusMethodNotAllowed, "method_not_allowed", "this endpoint is stateless: only POST is served")
	return false
}

func guardMedia(w http.ResponseWriter, req *http.Request) bool {
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json")
		return false
	}
	if !acceptsJSON(req.Header.Values("Accept")) {
		writeError(w, http.StatusNotAcceptable, "not_acceptable", "Accept must allow application/json or text/event-stream")
		return false
	}
	return true
}

// acceptsJSON is lenient: no Accept header accepts anything, and order and
// quality do not matter.
func acceptsJSON(accept []string) bool {
	if len(accept) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "", "*/*", "application/*", "application/json", "text/event-stream":
			return true
		}
	}
	return false
}

// readsEvents: the client names event streams, as MCP's transport asks of it.
func readsEvents(accept []string) bool {
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if media, _, err := mime.ParseMediaType(part); err == nil && media == "text/event-stream" {
			return true
		}
	}
	return false
}

// serveHealth answers whether the process is up and the database answers. It
// tells nothing else.
func (r *Router) serveHealth(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), 2*time.Second)
	defer cancel()
	if _, err := r.DB.Exec(ctx, "select 1"); err != nil {
		r.Log.Warn("health check", "error", err)
		writeError(w, http.StatusServiceUnavailable, string(fault.Unavailable), "the database is not reachable")
		return
	}
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// writeError answers in JSON whatever is asked outside MCP: clients that probe
// well-known paths choke on anything else.
func writeError(w http.ResponseWriter, status int, reason, sentence string) {
	body, _ := tool.Marshal(map[string]string{"error": reason, "error_description": sentence})
	writeJSON(w, status, body)
}
