package safehttp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pawgate/internal/fault"
)

// The stable tokens of an Error.
const (
	BadURL           fault.Reason = "bad_url"            // the URL cannot be read or is malformed
	BadRequest       fault.Reason = "bad_request"        // the method or a header is not acceptable
	BlockedScheme    fault.Reason = "blocked_scheme"     // neither http nor https
	BlockedAddress   fault.Reason = "blocked_address"    // the host is, or resolves to, an address that is not public
	BlockedPort      fault.Reason = "blocked_port"       // the port is not on the list
	BlockedRedirect  fault.Reason = "blocked_redirect"   // a redirect to less security, or with what must not cross hosts
	TooManyRedirects fault.Reason = "too_many_redirects" // the chain is too long, or a loop
	DNSFailed        fault.Reason = "dns_failed"         // the name has no address
	ConnectFailed    fault.Reason = "connect_failed"     // no address accepted a connection
	TLSFailed        fault.Reason = "tls_failed"         // no trusted TLS session
	BadResponse      fault.Reason = "bad_response"       // what came back is not HTTP, or broke off
	TooLarge         fault.Reason = fault.TooLarge       // the body is too large, or a decompression bomb
	Timeout          fault.Reason = "timeout"            // the deadline passed
	Cancelled        fault.Reason = fault.Cancelled      // the context was cancelled
)

// Error is a request that was refused or that failed. Its text is meant for the
// caller of a tool: it names the host, never the path, query, user name or
// password of a URL, nor an address of the network we run in.
type Error struct {
	Reason fault.Reason
	// Host is the host, or host and port, that the error is about, in folded
	// form; empty when the URL could not be read.
	Host string
	// Redirects is how many redirects led to Host; 0 for the URL asked for.
	Redirects int
	// Sent is true when some server may have received the request, so that the
	// outcome of one with effects is unknown.
	Sent bool

	message string
	cause   error
}

func refuse(reason fault.Reason, host, format string, args ...any) *Error {
	return &Error{Reason: reason, Host: host, message: fmt.Sprintf(format, args...)}
}

func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

// Error is the sentence for the caller. It says so when a redirect is to blame.
func (e *Error) Error() string {
	switch {
	case e.Redirects == 0:
		return e.message
	case e.Reason == BadURL || strings.HasPrefix(string(e.Reason), "blocked_"):
		return "redirect blocked: " + e.message
	default:
		return fmt.Sprintf("after redirect %d: %s", e.Redirects, e.message)
	}
}

// Unwrap is the cause, for the log. It is not worded for callers.
func (e *Error) Unwrap() error { return e.cause }

// Fault is the error as the answer to a tool call.
func (e *Error) Fault() *fault.Fault { return fault.New(e.Reason, "%s", e.Error()) }

// As lets fault.Of find the fault in a wrapped Error.
func (e *Error) As(target any) bool {
	f, ok := target.(**fault.Fault)
	if ok {
		*f = e.Fault()
	}
	return ok
}

// explain turns whatever stopped a hop into an Error.
func explain(ctx context.Context, h *hop, sent bool, err error) *Error {
	host := h.url.Host
	var e *Error
	if errors.As(err, &e) {
		known := *e
		known.Redirects = max(e.Redirects, h.count)
		known.Sent = sent
		return &known
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		e = refuse(Timeout, host, "no complete answer from %s in time", host)
	case ctx.Err() != nil:
		e = refuse(Cancelled, host, "the request to %s was cancelled", host)
	case !sent && h.url.Scheme == "https":
		// Dialling has errors of its own and nothing was written yet.
		e = refuse(TLSFailed, host, "no trusted TLS connection to %s: its certificate or protocol was not accepted", host)
	default:
		e = refuse(BadResponse, host, "%s broke off, or its answer is damaged", host)
	}
	e.Redirects, e.Sent = h.count, sent
	return e.because(err)
}
