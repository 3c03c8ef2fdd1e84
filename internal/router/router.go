// Package router is the public MCP server and the choke point: every tool
// call of every door passes its gate, once.
//
// The doors are HTTP (a laptop's server, or API Gateway through Lambda) and
// stdio, which is the same handler without a network. mcp-go speaks the
// protocol; this package decides, dispatches, redacts and records. It links no
// category: tools are catalogue entries, and a backend carries a call to
// wherever the category runs.
//
// It keeps nothing between requests but its configuration, because there are
// many instances of it.
package router

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"pawgate/internal/card"
	"pawgate/internal/catalog"
	"pawgate/internal/licence"
	"pawgate/internal/oauth"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/redact"
	"pawgate/internal/standing"
)

// Config is what a router is made of. All fields but the limits are required.
type Config struct {
	Version  string
	Catalog  *catalog.Catalog
	Backends map[string]Backend // by category
	DB       postgres.DB
	Log      *slog.Logger
	Now      func() time.Time

	// Licence says which edition this installation has; zero: community.
	Licence licence.Licence
	// Tokens checks access tokens (OAuth 2.1); nil: only keys are accepted.
	Tokens *oauth.Verifier
	// Resource tells clients where to get a token.
	Resource *oauth.Resource

	// Cards tells people of approvals that wait, where an operator has set a
	// destination; without a Sender, with the tool send_message.
	Cards card.Cards

	// AllowedHosts are the Host headers that are served; empty: any. A server
	// on loopback must set them, or a web page could reach it by DNS
	// rebinding. AllowedOrigins are the Origin headers of browsers that may
	// call; requests without an Origin are not from a browser.
	AllowedHosts, AllowedOrigins []string
	// Timeout is the longest a call may take. Behind a gateway it must be
	// below the gateway's own, so that the caller gets an answer, not a 504.
	Timeout time.Duration
	// MaxBody is the largest request body, in bytes; 0 means DefaultMaxBody.
	MaxBody int64
}

// DefaultMaxBody is the largest request body: below Lambda's 6 MB, which base64
// in an event would reach from 4.5 MB.
const DefaultMaxBody = 4 << 20

// Router is the handler of every door.
type Router struct {
	Config
	mcp      http.Handler
	standing *standing.Reader
	audit    *auditor
	redact   *redact.Redactor
}

// New assembles a router. It does no I/O.
func New(cfg Config) *Router {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.Resource == nil {
		cfg.Resource = new(oauth.Resource)
	}
	cfg.Cards.DB, cfg.Cards.Links.Now = cfg.DB, cfg.Now
	r := &Router{Config: cfg, standing: standing.NewReader(cfg.DB), audit: newAuditor(cfg.DB), redact: redact.New()}
	if r.Cards.Sender == nil {
		r.Cards.Sender = toolSender{r}
	}
	r.mcp = newMCP(cfg.Version, r.serveCall)
	return r
}

// ServeHTTP is the way in. The order matters: what is cheap and tells an
// outsider nothing comes first, and nothing runs before the caller is known.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	handler := chain(http.HandlerFunc(r.route),
		r.recoverPanics, // outermost: nothing may end the process
		r.identify,      // the request id, for every log line and answer after it
		r.guardHost,     // Host and Origin, before anything looks at the request
		r.limitBody,
	)
	handler.ServeHTTP(w, req)
}

// chain applies middleware so that the first is the outermost.
func chain(h http.Handler, middleware ...func(http.Handler) http.Handler) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// route is the whole public surface.
func (r *Router) route(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/mcp", "/mcp/":
		r.serveMCP(w, req)
	case metricsPath, logsPath, usagePath:
		r.serveUsage(w, req)
	case "/healthz":
		r.serveHealth(w, req)
	default:
		if r.approvalPage(req) {
			r.serveApproval(w, req)
			return
		}
		if r.Resource.Serves(req.URL.Path) {
			r.Resource.ServeHTTP(w, req)
			return
		}
		writeError(w, http.StatusNotFound, "not_found", "no such path; the MCP endpoint is /mcp")
	}
}

// approvalPage: the page behind a card's link, where there are such links.
func (r *Router) approvalPage(req *http.Request) bool {
	return r.Cards.Links.Base != nil && strings.HasPrefix(req.URL.Path, card.Path)
}

// serveMCP takes one message from the wire to its answer.
func (r *Router) serveMCP(w http.ResponseWriter, req *http.Request) {
	if !guardMethod(w, req) || !guardMedia(w, req) {
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), r.Timeout)
	defer cancel()
	if !r.vouched(ctx, w, req) {
		return
	}
	body, ok := readBody(w, req)
	if !ok {
		return
	}
	m, bad := parse(body)
	if bad != nil {
		bad.write(w, http.StatusBadRequest)
		return
	}
	c := r.newCall(ctx, m)
	if !r.authenticate(ctx, w, req, c) {
		return
	}
	if d := policy.Flooded(c.snapshot); d.Step != 0 {
		r.refuseFlood(ctx, w, c, d)
		return
	}
	if c.local != nil && m.method == "initialize" {
		c.local.meet(m)
	}
	switch {
	case m.notification() && m.method == "tools/call":
		r.refuseNotification(ctx, w, c)
	case m.method == "" && c.local != nil:
		c.local.deliver(m)
		w.WriteHeader(http.StatusAccepted)
	case m.notification() || m.method == "":
		// Notifications and replies ask for nothing here. In particular a
		// cancellation is the end of the connection (and the stdio pump's
		// business): ids of one client must not reach another's calls.
		w.WriteHeader(http.StatusAccepted)
	case m.method == "tools/list" && m.cursor != "":
		rpcErrorf(codeInvalidParams, "invalid cursor: the list is one page").of(m).write(w, c.status(http.StatusBadRequest))
	case m.method == "subscriptions/listen" && c.modern:
		r.listen(w, req.WithContext(ctx), c)
	default:
		forward(r.mcp, w, req.WithContext(ctx), c, r.lister(c))
	}
}

// lister renders the tools that this caller may call, in the catalogue's
// order, from text that was encoded once.
func (r *Router) lister(c *call) func() []byte {
	if c.message.method != "tools/list" {
		return nil
	}
	return func() []byte { return r.listedTools(c.snapshot) }
}
