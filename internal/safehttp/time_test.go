package safehttp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

type lookupFunc func(context.Context) ([]netip.Addr, error)

func (f lookupFunc) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	return f(ctx)
}

// TestDeadline is SSRF-17: one deadline for the whole call, at whatever point a
// server dawdles. The clock is a fake one.
func TestDeadline(t *testing.T) {
	t.Parallel()
	drip := func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = rw.Write([]byte("x"))
			rw.(http.Flusher).Flush()
			select {
			case <-time.After(5 * time.Second):
			case <-r.Context().Done():
			}
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	// Every hop answers just before a deadline of its own would pass.
	slowHops := func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(6 * time.Second):
		case <-r.Context().Done():
		}
		redirect(302, r.URL.Path+"x")(rw, r)
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		sent    bool
	}{
		{"SSRF-17 a byte every 5 s", drip, true},
		{"SSRF-17 no header", silent, true},
		{"SSRF-25 slow hops", slowHops, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.name("a.example", addrA)
				w.serve(addrA+":80", tt.handler)
				start := time.Now()
				_, err := get(t, w.client(safehttp.Policy{}), "http://a.example/")
				if e := wantReason(t, err, safehttp.Timeout); e.Sent != tt.sent || !errors.Is(e, context.DeadlineExceeded) {
					t.Errorf("error = %+v, cause %v", e, e.Unwrap())
				}
				if took := time.Since(start); took != safehttp.DefaultTimeout {
					t.Errorf("took %v, want %v", took, safehttp.DefaultTimeout)
				}
			})
		})
	}
}

// TestSlowNetwork: lookups and connects are inside the deadline, and one dead
// address does not use it up.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
	answer := func(context.Context) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(addrA), netip.MustParseAddr(addrB)}, nil
	}
	fails := func(context.Context) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: "a.example", Server: "10.0.0.53:53"}
	}
	tests := []struct {
		name    string
		lookup  lookupFunc
		timeout time.Duration
		reason  fault.Reason
		took    time.Duration
	}{
		{"lookup hangs", hang, 0, safehttp.Timeout, safehttp.DefaultTimeout},
		{"lookup fails", fails, 0, safehttp.DNSFailed, 0},
		{"both addresses hang", answer, 0, safehttp.ConnectFailed, 8 * time.Second},
		{"deadline before the first gives up", answer, 3 * time.Second, safehttp.Timeout, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dial := func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
				c := safehttp.New(safehttp.Policy{Timeout: tt.timeout}, safehttp.WithResolver(tt.lookup), safehttp.WithDial(dial))
				start := time.Now()
				_, err := get(t, c, "http://a.example/")
				if e := wantReason(t, err, tt.reason); e.Sent {
					t.Errorf("error = %+v", e)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

// TestContext: the caller's own deadline and cancellation hold.
func TestContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.name("a.example", addrA)
		w.serve(addrA+":80", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := w.client(safehttp.Policy{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, safehttp.Request{URL: "http://a.example/"})
		wantReason(t, err, safehttp.Timeout)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Do(ctx, safehttp.Request{URL: "http://a.example/"})
		wantReason(t, err, safehttp.Cancelled)
	})
}
