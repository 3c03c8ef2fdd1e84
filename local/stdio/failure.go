package stdio

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// failure is why a message has no answer of the endpoint's own, in words for
// the client. cause is for the log.
type failure struct {
	text  string
	data  errorData
	cause error
}

const outcomeUnknown = "whether the call took effect is not known; it was not sent again"

// fail ends a call that got no answer. A cancelled call and a stopping pump are
// silent; a notification or reply has nobody to tell but the log.
func (p *pump) fail(c *call, f failure) {
	cause := context.Cause(c.ctx)
	if c.answered || errors.Is(cause, errCancelled) || p.ctx.Err() != nil {
		return
	}
	if errors.Is(cause, errDrained) {
		f = p.drained(c)
	}
	attrs := []any{"method", clip(c.method, 64), "reason", f.data.Reason, "error", f.text}
	if f.cause != nil {
		attrs = append(attrs, "cause", strings.ReplaceAll(f.cause.Error(), p.secret(), "[key]"))
	}
	p.Log.Warn("message not answered by the endpoint", attrs...)
	if !c.expectsAnswer() {
		return
	}
	c.answered = true
	p.write(c, errorLine(c.answerID(), codeInternal, f.text, &f.data))
	p.forget(c)
}

// place names the endpoint in messages, without the rest of its URL.
func (p *pump) place() string {
	if p.URL == "" {
		return "the local router"
	}
	return p.endpoint.Host
}

// secret is what no text may contain; never empty, so that it can be replaced.
func (p *pump) secret() string {
	if p.Key == "" {
		return "\x00"
	}
	return p.Key
}

func (p *pump) drained(c *call) failure {
	if !c.sent.Load() && p.URL != "" {
		return failure{text: fmt.Sprintf("not sent: the input ended and the endpoint was not reached within %s", p.Drain),
			data: errorData{Reason: "deadline_exceeded"}}
	}
	return failure{text: fmt.Sprintf("no answer within %s after the input ended; %s", p.Drain, outcomeUnknown),
		data: errorData{Reason: "outcome_unknown"}}
}

// sendFailure words an error of the transport: before the request left nothing
// can have happened, after it anything can.
func (p *pump) sendFailure(c *call, err error) failure {
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		p.Log.Error("handler panicked", "panic", panicked.Error(), "stack", string(panicked.stack))
		return failure{text: "internal error, see the log of the server", data: errorData{Reason: "internal"}}
	case c.sent.Load() || p.URL == "":
		return failure{text: "the connection to " + p.place() + " ended before the answer; " + outcomeUnknown,
			data: errorData{Reason: "outcome_unknown"}, cause: err}
	}
	return failure{
		text: fmt.Sprintf("cannot reach %s: %s; nothing was sent, check PAWGATE_URL and that the router is up", p.place(), reachError(err)),
		data: errorData{Reason: "endpoint_unreachable"}, cause: err,
	}
}

// reachError says in plain words why no connection came about.
func reachError(err error) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.As(err, &cert):
		return "its TLS certificate is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no connection in time"
	}
	return "no connection"
}

func (p *pump) tooLarge() failure {
	return failure{text: fmt.Sprintf("the answer is longer than %d bytes, ask for less", p.MaxAnswer),
		data: errorData{Reason: "too_large"}}
}

func (p *pump) wrongID() failure {
	return failure{text: p.place() + " answered with the id of another request", data: errorData{Reason: "bad_answer"}}
}

// unanswered words an event stream that ended without the answer.
func (p *pump) unanswered(resp *http.Response) failure {
	if resp.StatusCode >= 300 {
		return p.statusFailure(resp, nil)
	}
	return failure{text: "the answer stream of " + p.place() + " ended before the answer; " + outcomeUnknown,
		data: errorData{Reason: "outcome_unknown", HTTPStatus: resp.StatusCode}}
}

// statusFailure words an HTTP answer that carries no JSON-RPC answer: one of a
// gateway, of the middleware before the MCP server, or of another server.
func (p *pump) statusFailure(resp *http.Response, body []byte) failure {
	code := resp.StatusCode
	wait, hasWait := retryAfter(resp.Header.Get("Retry-After"), p.Now())
	said := excerpt(body, p.secret())
	var advice, reason string
	switch {
	case code < 300:
		advice, reason = "the answer is not a JSON-RPC message", "bad_answer"
		if said == "" {
			advice = "the request was accepted but not answered"
		}
	case code < 400:
		advice, reason = "redirects are not followed, because the key would travel along"+target(resp), "redirected"
	case code == http.StatusUnauthorized && p.URL != "":
		advice, reason = "the key is missing, wrong or revoked; set PAWGATE_KEY to a valid key and start again", "unauthenticated"
	case code == http.StatusUnauthorized:
		advice, reason = "not authenticated", "unauthenticated"
	case code == http.StatusForbidden:
		advice, reason = "this key may not use this endpoint", "forbidden"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		advice, reason = "no MCP endpoint there; PAWGATE_URL must be its whole address, usually ending in /mcp", "not_found"
	case code == http.StatusRequestEntityTooLarge:
		advice, reason = "the message is too large for the endpoint", "too_large"
	case code == http.StatusTooManyRequests:
		advice, reason = "too many requests", "rate_limited"
	case code == http.StatusServiceUnavailable:
		advice, reason = "the router is not available just now", "unavailable"
	case code >= 500:
		advice, reason = outcomeUnknown, "outcome_unknown"
	default:
		advice, reason = "the request was refused", "http_error"
	}
	text := fmt.Sprintf("%s from %s: %s", strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code))), p.place(), advice)
	if hasWait {
		text += fmt.Sprintf(", try again in %d s", int(wait.Seconds()))
	}
	if said != "" {
		text += fmt.Sprintf(" (it says: %q)", said)
	}
	return failure{text: text, data: errorData{Reason: reason, HTTPStatus: code, RetryAfterMS: wait.Milliseconds()}}
}

// target names where a redirect led to, without query or user.
func target(resp *http.Response) string {
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || u.Host == "" {
		return ""
	}
	return "; it points to " + clip((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), 200)
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3), at most a
// day, in whole seconds rounded up.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	var wait time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(seconds, 86400)) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = (at.Sub(now) + time.Second - 1).Truncate(time.Second)
	}
	wait = min(max(wait, 0), 24*time.Hour)
	return wait, wait > 0
}

var (
	titleTag = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	anyTag   = regexp.MustCompile(`(?s)<[^>]*>?`)
)

// excerpt is what a foreign answer says, short and plain: the title of a page,
// the message of a JSON error, or the start of the text.
func excerpt(body []byte, secret string) string {
	s := string(body[:min(len(body), 4<<10)])
	if object, err := members(body); err == nil && object != nil {
		s = firstText(object)
	} else if title := titleTag.FindStringSubmatch(s); title != nil {
		s = title[1]
	}
	s = html.UnescapeString(anyTag.ReplaceAllString(s, " "))
	s = strings.ReplaceAll(s, secret, "[key]")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, s)
	return clip(strings.Join(strings.Fields(s), " "), 160)
}

// firstText is the member of a JSON error that its sender meant to be read.
func firstText(object map[string]json.RawMessage) string {
	for _, name := range []string{"message", "Message", "error_description", "error", "detail"} {
		if s := text(object[name]); s != "" {
			return s
		}
	}
	if inner, err := members(object["error"]); err == nil && inner != nil {
		return text(inner["message"])
	}
	return ""
}

// clip shortens a text to n runes.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
