package router

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/oauth"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

// gateTimeout is how long the gate waits for one answer of the database before
// it says that the database is away. The call's own time is for the call.
const gateTimeout = 5 * time.Second

// authenticate finds out who calls, and reads in the same statement everything
// that the gate decides on. On failure it has answered.
func (r *Router) authenticate(ctx context.Context, w http.ResponseWriter, req *http.Request, c *call) bool {
	who, refused := r.who(ctx, req, c)
	if refused != nil {
		r.turnAway(ctx, w, req, c, *refused)
		return false
	}
	c.who = who
	var definition *tool.Definition
	if c.entry != nil {
		definition = &c.entry.Definition
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	snapshot, err := r.standing.Read(ctx, who, definition)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		r.turnAway(ctx, w, req, c, r.badCredential(who))
		return false
	case err != nil:
		r.unavailable(ctx, w, c.message, err)
		return false
	}
	snapshot.Caller.RequestID, snapshot.Edition = c.requestID, r.Licence.EditionAt(r.Now())
	c.snapshot = snapshot
	return true
}

// refusedLogin is why a request has no caller.
type refusedLogin struct {
	status    int
	reason    string // for the audit row
	challenge string // WWW-Authenticate
	sentence  string
}

const sendKey = "not authenticated: send a valid key as \"Authorization: Bearer paw_…\""

func (r *Router) badCredential(who standing.Who) refusedLogin {
	refused := refusedLogin{http.StatusUnauthorized, "bad_key", `Bearer realm="pawgate", error="invalid_token"`, sendKey}
	if who.Subject != "" {
		refused.reason = "unmapped_subject"
		refused.sentence = "not authenticated: no agent is mapped to the subject of this token; an operator can: pawgate oauth map"
	}
	return refused
}

// who takes the caller's credential out of the request: none at the local
// door, else a bearer key or an access token.
func (r *Router) who(ctx context.Context, req *http.Request, c *call) (standing.Who, *refusedLogin) {
	if c.local != nil {
		c.door = "stdio"
		return standing.Who{Agent: c.local.agent, Credential: localCredential, Scopes: []string{caller.ScopeAll}}, nil
	}
	c.door = "http"
	token, ok := bearer(req.Header)
	if !ok {
		return standing.Who{}, &refusedLogin{http.StatusUnauthorized, "no_key", r.Resource.Challenge(nil), sendKey}
	}
	if r.Tokens != nil && oauth.IsJWT(token) {
		return r.subject(ctx, token)
	}
	sum := sha256.Sum256([]byte(token))
	return standing.Who{KeyHash: sum[:]}, nil
}

// subject checks an access token.
func (r *Router) subject(ctx context.Context, token string) (standing.Who, *refusedLogin) {
	claims, err := r.Tokens.Verify(ctx, token)
	var refused *oauth.Error
	switch {
	case errors.As(err, &refused):
		return standing.Who{}, &refusedLogin{refused.Status, refused.Reason, r.Resource.Challenge(refused), refused.Error()}
	case err != nil:
		return standing.Who{}, &refusedLogin{http.StatusUnauthorized, "bad_token", r.Resource.Challenge(nil), sendKey}
	}
	return standing.Who{Issuer: claims.Issuer, Subject: claims.Subject, Scopes: claims.Scopes, Credential: "oauth:" + credentialOf(claims.Subject)}, nil
}

// credentialOf names a subject in audit rows, limits and idempotency keys; a
// long one by its beginning and its hash, so that no two become one.
func credentialOf(subject string) string {
	const most = 60
	if len(subject) <= most {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	return strings.ToValidUTF8(subject[:most-20], "") + "…" + hex.EncodeToString(sum[:8])
}

// vouched authenticates a large request before its body is read, so that a
// stranger can make nobody parse megabytes. On failure it has answered.
func (r *Router) vouched(ctx context.Context, w http.ResponseWriter, req *http.Request) bool {
	if req.ContentLength >= 0 && req.ContentLength <= smallBody {
		return true
	}
	c := r.newCall(ctx, new(message))
	who, refused := r.who(ctx, req, c)
	if refused == nil {
		_, err := r.standing.Peek(ctx, who, nil)
		switch {
		case err == nil:
			return true
		case !errors.Is(err, pgx.ErrNoRows):
			r.unavailable(ctx, w, c.message, err)
			return false
		}
		bad := r.badCredential(who)
		refused = &bad
	}
	w.Header().Set("Connection", "close") // the body is not read
	r.turnAway(ctx, w, req, c, *refused)
	return false
}

// smallBody is what is read and parsed from anybody, in bytes.
const smallBody = 64 << 10

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

// turnAway answers a request without a caller, every wrong key alike, and
// records the attempt without any part of the credential. An address that fails
// too often gets 429, and its attempts are no longer recorded one by one.
func (r *Router) turnAway(ctx context.Context, w http.ResponseWriter, req *http.Request, c *call, refused refusedLogin) {
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
	row.Decision, row.Reason = "refused", refused.reason
	if err := r.audit.write(ctx, row); err != nil {
		r.unavailable(ctx, w, c.message, err)
		return
	}
	if refused.status != http.StatusServiceUnavailable {
		w.Header().Set("WWW-Authenticate", refused.challenge)
	}
	rpcErrorf(codeUnauthenticated, "%s", refused.sentence).of(c.message).reason("unauthenticated").write(w, refused.status)
}

// source is the address that a request came from. X-Forwarded-For is not
// looked at: anybody can write it.
func source(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		host = req.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().Is4() {
		return host
	}
	prefix, err := addr.WithZone("").Prefix(64) // one customer has that many addresses
	if err != nil {
		return host
	}
	return prefix.String()
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
