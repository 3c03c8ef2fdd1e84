package safehttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"pawgate/internal/safehttp"
)

// BenchmarkOverhead fetches the same 16 KiB page over loopback with the guard
// and with a plain http.Client, in turn, and reports how the times compare.
func BenchmarkOverhead(b *testing.B) {
	page := make([]byte, 16<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	defer server.Close()
	target := server.Listener.Addr().String()
	connect := func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", target)
	}
	answer := lookupFunc(func(context.Context) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(addrA)}, nil })

	for name, fresh := range map[string]bool{"kept connection": false, "new connection": true} {
		b.Run(name, func(b *testing.B) {
			guarded := safehttp.New(safehttp.Policy{}, safehttp.WithResolver(answer), safehttp.WithDial(connect))
			defer guarded.CloseIdle()
			plain := &http.Client{Transport: &http.Transport{}}
			defer plain.CloseIdleConnections()
			var withGuard, without time.Duration
			for b.Loop() {
				start := time.Now()
				if r, err := guarded.Do(b.Context(), safehttp.Request{URL: "http://x.example/"}); err != nil || len(r.Body) != len(page) {
					b.Fatal(err)
				}
				middle := time.Now()
				if n, err := fetchPlain(b.Context(), plain, server.URL); err != nil || n != int64(len(page)) {
					b.Fatal(err)
				}
				withGuard, without = withGuard+middle.Sub(start), without+time.Since(middle)
				if fresh {
					guarded.CloseIdle()
					plain.CloseIdleConnections()
				}
			}
			b.ReportMetric(float64(withGuard)/float64(without), "guarded/plain")
		})
	}
}

func fetchPlain(ctx context.Context, c *http.Client, url string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return int64(len(body)), err
}

func BenchmarkBlocked(b *testing.B) {
	addr := netip.MustParseAddr("2606:4700:4700::1111")
	for b.Loop() {
		if _, blocked := safehttp.Blocked(addr); blocked {
			b.Fatal("blocked")
		}
	}
}
