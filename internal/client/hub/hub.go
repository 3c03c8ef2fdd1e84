// Package hub finds models on a model hub and fetches them (the API of the
// Hugging Face Hub, or a mirror that speaks it).
//
// A download is good or it is not there: its revision is pinned to a commit,
// its size and SHA-256 are those that the hub states, it is written under a
// name of its own and gets its real one, atomically, only when both match. It
// resumes after a break, holds a lock so that no two processes write one file,
// and asks for the disk space first.
//
// The package writes into the one folder that it is given and nowhere else:
// names from the hub are checked before they become part of a path. Its key
// goes to the configured host only, and a redirect cannot lead it into the
// network it runs in.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"net/netip"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// Config is where the hub is.
type Config struct {
	URL   string `envconfig:"PAWGATE_HUB_URL" default:"https://huggingface.co" desc:"model hub, or a mirror of it"`
	Token string `envconfig:"PAWGATE_HUB_TOKEN" desc:"access token of the hub, for gated models"`
}

// The faults that only downloads have.
const (
	InsufficientStorage fault.Reason = "insufficient_storage"
	ChecksumMismatch    fault.Reason = "checksum_mismatch"
	Gated               fault.Reason = "gated"
)

// Hub is a client of one hub.
type Hub struct {
	base   *url.URL
	token  string
	client *http.Client
	limits limits
}

// limits are the numbers that tests make smaller.
type limits struct {
	stall   time.Duration // without a byte until a connection is given up
	backoff func(try int) time.Duration
	free    func(dir string) (int64, error) // space on the disk of a folder, in bytes
}

const (
	apiTimeout    = 15 * time.Second
	maxAPI        = 16 << 20 // bytes of an API answer
	maxRedirects  = 5
	stallTimeout  = time.Minute
	connectLimit  = 15 * time.Second
	headerTimeout = 30 * time.Second
)

// New is a client. It does no I/O; it fails on an address that is no URL.
func New(cfg Config) (*Hub, error) {
	base, err := url.Parse(strings.TrimRight(cmp.Or(cfg.URL, "https://huggingface.co"), "/"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, errors.New("PAWGATE_HUB_URL is not an http or https URL")
	}
	h := &Hub{base: base, token: cfg.Token, limits: limits{stall: stallTimeout, free: freeSpace,
		backoff: func(try int) time.Duration { return min(time.Second<<min(try, 5), 30*time.Second) }}}
	h.client = &http.Client{
		Transport: &http.Transport{DialContext: h.dial, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: connectLimit, ResponseHeaderTimeout: headerTimeout, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("the hub redirects too often")
			}
			if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
				return errors.New("the hub redirects to an unencrypted address")
			}
			return nil // the Authorization header stays behind when the host changes (net/http)
		},
	}
	return h, nil
}

// dial reaches the configured hub wherever it is, and what it redirects to at
// public addresses only.
func (h *Hub) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectLimit}
	if addr != net.JoinHostPort(h.base.Hostname(), cmp.Or(h.base.Port(), map[string]string{"http": "80"}[h.base.Scheme], "443")) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return errors.New("the hub redirects to no address")
			}
			if reason, blocked := safehttp.Blocked(ap.Addr()); blocked {
				return fmt.Errorf("the hub redirects to an address that is %s", reason)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

// get asks the hub's API and decodes the answer.
func (h *Hub) get(ctx context.Context, what, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	resp, err := h.request(ctx, path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := refused(resp, what); err != nil {
		return err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAPI)).Decode(into); err != nil {
		return fault.Retry(fault.Unavailable, 5*time.Second, "the model hub's answer could not be read; try again later")
	}
	return nil
}

func (h *Hub) request(ctx context.Context, path string, query url.Values, header http.Header) (*http.Response, error) {
	u := *h.base
	u.Path += path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make hub request: %w", err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "pawgate/1.0")
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStalled) {
			return nil, ctx.Err()
		}
		return nil, unreachable(err)
	}
	return resp, nil
}

// unreachable is retryable and keeps the cause out of the sentence: it names
// addresses.
func unreachable(cause error) error {
	return &broken{fault.Retry(fault.Unavailable, 10*time.Second, "the model hub is not reachable; try again later"), cause}
}

// broken is a fault that a download tries again by itself first.
type broken struct {
	*fault.Fault
	cause error
}

func (b *broken) Unwrap() []error { return []error{b.Fault, b.cause} }

// refused is the fault of an answer that is no success.
func refused(resp *http.Response, what string) error {
	switch s := resp.StatusCode; {
	case s == http.StatusOK || s == http.StatusPartialContent:
		return nil
	case s == http.StatusNotFound:
		return fault.New(fault.NotFound, "the model hub has no %s; model_search finds what there is", what)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return fault.New(Gated, "%s is gated, private, or not there: the operator accepts its terms on the hub and sets PAWGATE_HUB_TOKEN", what)
	case s == http.StatusTooManyRequests:
		wait := 30 * time.Second
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 && n < 3600 {
			wait = time.Duration(n) * time.Second
		}
		return &broken{fault.Retry(fault.RateLimited, wait, "the model hub limits requests; try again in %s", wait), nil}
	}
	return &broken{fault.Retry(fault.Unavailable, 10*time.Second, "the model hub answers HTTP %d; try again later", resp.StatusCode), nil}
}
