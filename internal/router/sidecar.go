package router

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed sidecar.sql
var sidecarSQL string

// reachTimeout is how long the sidecar may take to accept a connection. A
// caller hears within 2 s that it is away; the rest is for its last report.
const reachTimeout = 1500 * time.Millisecond

// Sidecar is a category on a sidecar host.
type Sidecar struct {
	URL    string // https://host[:port]
	Client *http.Client
	Signer caller.Signer
	DB     postgres.DB
	Now    func() time.Time
}

// NewSidecarClient follows no redirect and uses no proxy: the call carries an
// assertion and goes to one place.
func NewSidecarClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: reachTimeout}).DialContext,
			TLSHandshakeTimeout: reachTimeout,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CheckSidecarURL refuses to send assertions in the clear over a network.
func CheckSidecarURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return fmt.Errorf("PAWGATE_SIDECAR_URL is not a URL")
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme == "https" || u.Scheme == "http" && loopback {
		return nil
	}
	return fmt.Errorf("PAWGATE_SIDECAR_URL must be https, or http on loopback")
}

// Call posts the call and waits for its outcome.
func (s Sidecar) Call(ctx context.Context, who caller.Caller, entry *catalog.Entry, arguments []byte) tool.Outcome {
	payload, err := envelope(ctx, s.Signer, who, entry, arguments)
	if err != nil {
		return tool.Failed(err, who.RequestID)
	}
	// Name, connection and handshake share the time: each alone may take less.
	reach, giveUp := context.WithCancel(ctx)
	defer giveUp()
	patience := time.AfterFunc(reachTimeout, giveUp)
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(reach, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { patience.Stop() },
		WroteHeaders: func() { sent.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, s.URL+"/call/"+entry.Category, bytes.NewReader(payload))
	if err != nil {
		return tool.Failed(fmt.Errorf("make sidecar request: %w", err), who.RequestID)
	}
	req.GetBody = nil // a request is never sent again by the transport
	req.Header.Set("Content-Type", "application/json")
	listener := tool.Listener(ctx)
	if listener != nil {
		req.Header.Set("Accept", tool.MediaLines)
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return s.failed(ctx, who, entry, sent.Load(), err)
	}
	defer resp.Body.Close()
	body, err := readOutcome(resp, listener)
	if err != nil {
		return s.failed(ctx, who, entry, true, err)
	}
	switch cause := fmt.Errorf("HTTP %d", resp.StatusCode); {
	case resp.StatusCode == http.StatusServiceUnavailable: // a proxy that has no sidecar behind it
		return s.unreachable(ctx, who, entry, cause)
	case resp.StatusCode >= http.StatusInternalServerError: // a proxy may answer so after it passed the call on
		return s.failed(ctx, who, entry, true, cause)
	}
	return decodeOutcome(body, who, entry)
}

// maxReports bounds the reports before an outcome, in bytes.
const maxReports = 4 << 20

// readOutcome reads the outcome, and passes on the reports before it.
func readOutcome(resp *http.Response, listener func(tool.Progress)) ([]byte, error) {
	if listener == nil || resp.Header.Get("Content-Type") != tool.MediaLines {
		return io.ReadAll(io.LimitReader(resp.Body, tool.MaxResult+1<<16))
	}
	lines := bufio.NewReader(io.LimitReader(resp.Body, tool.MaxResult+maxReports))
	for {
		line, err := lines.ReadBytes('\n')
		var l tool.Line
		if err != nil || json.Unmarshal(line, &l) != nil || l.Progress == nil {
			return line, err
		}
		listener(*l.Progress)
	}
}

func (s Sidecar) failed(ctx context.Context, who caller.Caller, entry *catalog.Entry, sent bool, err error) tool.Outcome {
	switch {
	case ctx.Err() != nil && sent:
		return lost(ctx, entry)
	case sent && !neverConnected(err) && !entry.Hints.ReadOnly:
		slog.Error("sidecar answer lost", "request_id", who.RequestID, "tool", entry.Name, "error", err)
		return outcomeUnknown(entry)
	}
	return s.unreachable(ctx, who, entry, err)
}

// unreachable tells what the sidecar last said of itself, and when.
func (s Sidecar) unreachable(ctx context.Context, who caller.Caller, entry *catalog.Entry, cause error) tool.Outcome {
	slog.Error("sidecar not reached", "request_id", who.RequestID, "tool", entry.Name, "error", cause)
	f := fault.Retry(fault.SidecarUnreachable, 5*time.Second,
		"the sidecar host of category %s is not reachable; nothing was done", entry.Category)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	last, err := postgres.First[struct {
		Report     json.RawMessage
		AgeSeconds int64
	}](ctx, s.DB, sidecarSQL, entry.Category)
	if errors.Is(err, pgx.ErrNoRows) {
		f.Message += "; it has never reported"
		return tool.Outcome{Fault: f}
	}
	if err != nil {
		f.Message += "; what it last reported cannot be read now"
		return tool.Outcome{Fault: f}
	}
	f.Message += fmt.Sprintf("; it last reported %s ago", (time.Duration(last.AgeSeconds) * time.Second).String())
	return tool.Outcome{Fault: f.With("last_report", last.Report).With("last_report_age_seconds", last.AgeSeconds)}
}

// neverConnected reports whether an error certainly came before a request was
// sent.
func neverConnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}
