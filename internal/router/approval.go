package router

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/card"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

//go:embed approval.sql
var approvalSQL string

// cardTimeout is how long the answer of a call that needs an approval waits for
// its card. One that takes longer is sent by the clock.
const cardTimeout = 3 * time.Second

// sendCard tells whoever may approve. That it could not is no reason to answer
// the caller otherwise: the card stays due, and the request can be found.
func (r *Router) sendCard(ctx context.Context, approval string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cardTimeout)
	defer cancel()
	if _, err := r.Cards.Send(ctx, approval); err != nil {
		r.Log.Warn("card not sent", "request_id", requestID(ctx), "approval", approval, "error", r.redact.String(err.Error()))
	}
}

// SendCards sends the cards that are due: those of grants, and those that could
// not be sent with the answer. A clock calls it once a minute or more often.
func (r *Router) SendCards(ctx context.Context) { r.sendCard(ctx, "") }

// toolSender sends cards with the tool that sends messages, wherever its
// category runs. The destination is an operator's choice, and what may be sent
// to, the category checks as for any message.
type toolSender struct{ router *Router }

// sendTool is the name of that tool.
const sendTool = "send_message"

// Send calls the tool in the name of the agent whose channel it is.
func (s toolSender) Send(ctx context.Context, m card.Message) error {
	entry := s.router.Catalog.Find(sendTool)
	if entry == nil || s.router.Backends[entry.Category] == nil {
		return fault.New(fault.NotConfigured, "no category here sends messages")
	}
	encoded, err := tool.Marshal(map[string]string{"channel": m.Channel, "chat_id": m.Destination, "text": m.Text, "idempotency_key": m.Key})
	if err != nil {
		return fmt.Errorf("encode card: %w", err)
	}
	arguments, err := entry.Schema().Normalize(encoded)
	if err != nil {
		return fmt.Errorf("send card: %w", err)
	}
	who := caller.Caller{Agent: m.Agent, Credential: "card", Scopes: []string{entry.Category + ":" + entry.Action()}, RequestID: requestID(ctx)}
	switch out := s.router.Backends[entry.Category].Call(ctx, who, entry, arguments); {
	case out.Fault != nil:
		return out.Fault
	case out.Invalid != nil:
		return out.Invalid
	}
	return nil
}

// maxForm bounds the form of a decision, in bytes.
const maxForm = 8 << 10

// serveApproval is the page behind a card's link. The link itself authenticates:
// it is signed, for one request, and worth nothing once that is decided or over.
// To look decides nothing, because mail programs and chats follow links by
// themselves; only the form's POST does.
func (r *Router) serveApproval(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // not no-referrer, which makes the form's Origin null
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	if req.Method != http.MethodGet && req.Method != http.MethodHead && req.Method != http.MethodPost {
		h.Set("Allow", "GET, HEAD, POST")
		page(w, http.StatusMethodNotAllowed, "Only GET and POST are served here.")
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), gateTimeout)
	defer cancel()
	link, err := r.Cards.Links.Check(ctx, r.DB, strings.TrimPrefix(req.URL.Path, card.Path))
	if errors.Is(err, card.ErrLink) {
		r.refuseLink(ctx, w, req)
		return
	}
	if err == nil && req.Method == http.MethodPost {
		err = r.decideByCard(ctx, w, req, link)
		if errors.Is(err, errAnswered) {
			return
		}
	}
	var c card.Card
	if err == nil {
		c, err = r.Cards.Read(ctx, link)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		page(w, http.StatusNotFound, "This request is gone.")
	case err != nil:
		r.Log.Error("approval page", "request_id", requestID(ctx), "error", err)
		h.Set("Retry-After", "2")
		page(w, http.StatusServiceUnavailable, "The database is not reachable. Nothing was decided; try again in a few seconds.")
	case c.State == "pending":
		page(w, http.StatusOK, lines(c), form)
	default:
		page(w, http.StatusOK, lines(c), paragraph(settledText(c)))
	}
}

// errAnswered is a decision whose answer has been given.
var errAnswered = errors.New("answered")

// decideByCard takes the form. Whatever it came to, the page shows what is so
// now.
func (r *Router) decideByCard(ctx context.Context, w http.ResponseWriter, req *http.Request, link card.Link) error {
	req.Body = http.MaxBytesReader(w, req.Body, maxForm)
	if err := req.ParseForm(); err != nil {
		page(w, http.StatusBadRequest, "The form could not be read.")
		return errAnswered
	}
	state, ok := map[string]string{"approve": "approved", "deny": "denied"}[req.PostForm.Get("decision")]
	if !ok {
		page(w, http.StatusBadRequest, "The decision must be approve or deny.")
		return errAnswered
	}
	c, err := r.Cards.Read(ctx, link)
	if err != nil {
		return err
	}
	rows, err := encodeRows([]auditRow{{
		Kind: "decision", RequestID: requestID(ctx), Door: "card", AgentID: link.Agent, CredentialID: "card",
		Method: "approvals/decide", Tool: short(c.Tool), Decision: "allowed", Reason: state,
	}})
	if err != nil {
		return err
	}
	channel, _, _ := strings.Cut(c.Destination, ":")
	if _, of, another := strings.Cut(channel, "/"); another {
		channel = of
	}
	reason := short(strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(req.PostForm.Get("reason"), "\x00", ""), "")))
	_, err = postgres.First[struct{ Decided bool }](ctx, r.DB, approvalSQL, link.Approval, link.Agent, state, reason,
		strings.TrimSuffix("card "+channel, " "), string(rows))
	return err
}

// refuseLink answers a link that is not ours like a failed login, and as
// sparingly: guessing is slowed down.
func (r *Router) refuseLink(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	wait, err := standing.Take(ctx, r.DB, "login "+source(req), loginLimit)
	switch {
	case err != nil:
		page(w, http.StatusServiceUnavailable, "The database is not reachable; try again in a few seconds.")
	case wait > 0:
		tooMany(w, new(message), wait, "too many links from this address that are not valid")
	default:
		page(w, http.StatusNotFound, "This link is not valid, or its time is over. The agent can ask again.")
	}
}

func settledText(c card.Card) string {
	if c.State == "expired" {
		return "Its time is over. The agent can ask again."
	}
	text := "It is " + c.State
	if c.DecidedBy != "" {
		text += ", decided by " + c.DecidedBy
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text + "."
}

// markup is HTML; everything else is escaped.
type markup string

const form markup = `<form method="post"><p><label>Reason, if denied: <input name="reason" maxlength="80"></label></p>` +
	`<p><button name="decision" value="approve">Approve</button> <button name="decision" value="deny">Deny</button></p></form>`

func paragraph(text string) markup {
	return markup("<p><strong>" + html.EscapeString(text) + "</strong></p>")
}

func lines(c card.Card) markup {
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>Approval %s</h1><dl>", html.EscapeString(c.ID))
	for _, line := range c.Lines() {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", html.EscapeString(line.Name), html.EscapeString(line.Value))
	}
	return markup(b.String() + "</dl>")
}

// page writes a page of parts: markup as it is, text as a paragraph.
func page(w http.ResponseWriter, status int, parts ...any) {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>pawgate</title>` +
		`<style>body{font-family:sans-serif;max-width:40em;margin:2em auto;padding:0 1em}dt{font-weight:bold}dd{margin:0 0 .6em;overflow-wrap:anywhere}button{padding:.5em 1.5em}</style></head><body>`)
	for _, part := range parts {
		switch p := part.(type) {
		case markup:
			b.WriteString(string(p))
		case string:
			b.WriteString(string(paragraph(p)))
		}
	}
	b.WriteString("</body></html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String()))
}
