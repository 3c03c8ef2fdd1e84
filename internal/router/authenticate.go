package router

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

// gateTimeout is how long the gate waits for one answer of the database before
// it says that the database is away. The call's own time is for the call.
const gateTimeout = 5 * time.Second

// authenticate finds out who calls, and reads in the same statement everything
// that the gate decides on. On failure it has answered.
func (r *Router) authenticate(ctx context.Context, w http.ResponseWriter, req *http.Request, c *call) bool {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	who, ok := r.who(ctx, req, c)
	if !ok {
		r.unauthorized(ctx, w, req, c, "no_key")
		return false
	}
	var definition *tool.Definition
	if c.entry != nil {
		definition = &c.entry.Definition
	}
	snapshot, err := standing.Read(ctx, r.DB, who, definition)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		r.unauthorized(ctx, w, req, c, "bad_key")
		return false
	case err != nil:
		r.unavailable(ctx, w, c.message, err)
		return false
	}
	snapshot.Caller.RequestID, snapshot.Edition = c.requestID, r.Edition
	c.snapshot = snapshot
	return true
}

// who takes the caller's credential out of the request: none at the local
// door, else a bearer key.
func (r *Router) who(_ context.Context, req *http.Request, c *call) (standing.Who, bool) {
	if c.local != nil {
		c.door = "stdio"
		return standing.Who{Agent: c.local.agent, Credential: localCredential, Scopes: []string{caller.ScopeAll}}, true
	}
	c.door = "http"
	token, ok := bearer(req.Header)
	sum := sha256.Sum256([]byte(token))
	return standing.Who{KeyHash: sum[:]}, ok
}

// bearer takes the token out of the one Authorization header (RFC 6750 §2.1).
// Tokens in the query string are not looked at.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " \t,")
}

// loginLimit is how many failed logins one address has before it must wait.
var loginLimit = standing.Limit{Burst: 20, PerMinute: 20}

// unauthorized answers 401 alike for every cause and records the attempt
// without any part of the key. An address that fails too often gets 429, and
// its attempts are no longer recorded one by one.
func (r *Router) unauthorized(ctx context.Context, w http.ResponseWriter, req *http.Request, c *call, reason string) {
	wait, err := standing.Take(ctx, r.DB, "login "+source(req), loginLimit)
	if err != nil {
		r.unavailable(ctx, w, c.message, err)
		return
	}
	if wait > 0 {
		tooMany(w, c.message, wait, "too many failed logins from this address")
		return
	}
	row := r.row(c, "decision")
	row.Decision, row.Reason = "refused", reason
	if err := r.audit.write(ctx, row); err != nil {
		r.unavailable(ctx, w, c.message, err)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="pawgate", error="invalid_token"`)
	rpcErrorf(codeUnauthenticated, "not authenticated: send a valid key as \"Authorization: Bearer paw_…\"").of(c.message).
		reason("unauthenticated").write(w, http.StatusUnauthorized)
}

// source is the address that a request came from. X-Forwarded-For is not
// looked at: anybody can write it.
func source(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}

// tooMany answers 429, which is for floods and failed logins alone: Claude Code
// does not try it again.
func tooMany(w http.ResponseWriter, m *message, wait time.Duration, what string) {
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	e := rpcErrorf(codeRateLimited, "rate limit exceeded: %s; try again in %d s", what, seconds).of(m)
	e.Data = map[string]any{"reason": fault.RateLimited, "retry_after_ms": wait.Milliseconds()}
	e.write(w, http.StatusTooManyRequests)
}

// unavailable answers 503: nothing is decided without the database.
func (r *Router) unavailable(ctx context.Context, w http.ResponseWriter, m *message, cause error) {
	const wait = 2 * time.Second
	r.Log.Error("gate without database", "request_id", requestID(ctx), "error", cause)
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
	e := rpcErrorf(codeInternal, "the database is not reachable; nothing was done, try again in a few seconds").of(m)
	e.Data = map[string]any{"reason": fault.Unavailable, "retry_after_ms": wait.Milliseconds()}
	e.write(w, http.StatusServiceUnavailable)
}
