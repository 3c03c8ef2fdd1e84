package router

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
)

//go:embed snapshot.sql
var snapshotSQL string

type localKey struct{}

// WithLocalAgent marks a request that needs no key because it comes from this
// very process: the stdio door, whose user owns the database anyway. It cannot
// be reached from a network.
func WithLocalAgent(ctx context.Context, agent string) context.Context {
	return context.WithValue(ctx, localKey{}, agent)
}

// localCredential stands in audit rows for the operating-system user.
const localCredential = "local"

// authenticate finds out who calls, and reads in the same statement everything
// that the gate decides on. On failure it has answered.
func (r *Router) authenticate(ctx context.Context, w http.ResponseWriter, req *http.Request, m *message) (policy.Snapshot, string, bool) {
	door, agent, hash := "http", "", []byte{}
	if local, ok := ctx.Value(localKey{}).(string); ok {
		door, agent = "stdio", local
	} else {
		token, ok := bearer(req.Header)
		if !ok {
			r.unauthorized(ctx, w, m, door, "no_key")
			return policy.Snapshot{}, door, false
		}
		sum := sha256.Sum256([]byte(token))
		hash = sum[:]
	}
	snapshot, err := r.readSnapshot(ctx, agent, hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		r.unauthorized(ctx, w, m, door, "bad_key")
	case err != nil:
		r.unavailable(ctx, w, m, err)
	}
	return snapshot, door, err == nil
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

// snapshotRow is what snapshot.sql selects.
type snapshotRow struct {
	CredentialID     string
	Scopes           []string
	AgentID          string
	State            string
	AllowedTools     []string
	DeniedTools      []string
	ApprovalRequired []string
	ScopedTools      []string
	Stopped          bool
	StopEveryone     bool
	StopReason       string
	StopSince        time.Time
}

func (r *Router) readSnapshot(ctx context.Context, agent string, hash []byte) (policy.Snapshot, error) {
	row, err := postgres.First[snapshotRow](ctx, r.DB, snapshotSQL, hash, agent, localCredential, []string{caller.ScopeAll})
	if err != nil {
		return policy.Snapshot{}, err
	}
	s := policy.Snapshot{
		Agent: policy.Agent{ID: row.AgentID, State: row.State, Allowed: row.AllowedTools, Denied: row.DeniedTools,
			ApprovalRequired: row.ApprovalRequired, Scoped: row.ScopedTools},
		Caller: caller.Caller{Agent: row.AgentID, Credential: row.CredentialID, Scopes: row.Scopes, RequestID: requestID(ctx)},
	}
	if row.Stopped {
		s.Stop = &policy.Stop{Everyone: row.StopEveryone, Reason: row.StopReason, Since: row.StopSince}
	}
	return s, nil
}

// unauthorized answers 401 alike for every cause and records the attempt
// without any part of the key.
func (r *Router) unauthorized(ctx context.Context, w http.ResponseWriter, m *message, door, reason string) {
	row := auditRow{RequestID: requestID(ctx), Door: door, Method: m.method, Tool: auditName(m), Decision: "refused", Reason: reason}
	if err := r.audit.write(ctx, row); err != nil {
		r.unavailable(ctx, w, m, err)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="pawgate", error="invalid_token"`)
	rpcErrorf(-32001, "not authenticated: send a valid key as \"Authorization: Bearer paw_…\"").of(m).
		reason("unauthenticated").write(w, http.StatusUnauthorized)
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
