package safehttp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// Public addresses that stand for servers. Nothing is sent to them: the world's
// dialler ends in memory.
const (
	addrA = "93.184.216.34"
	addrB = "151.101.1.69"
)

// world is a resolver and a network in memory that count what is asked of them.
type world struct {
	t *testing.T

	mu      sync.Mutex
	names   map[string][][]netip.Addr // answers in turn; the last one stays
	servers map[netip.AddrPort]*pipeListener
	lookups int
	dials   []netip.AddrPort
}

func newWorld(t *testing.T) *world {
	return &world{t: t, names: map[string][][]netip.Addr{}, servers: map[netip.AddrPort]*pipeListener{}}
}

// name adds one answer for a name.
func (w *world) name(host string, addrs ...string) {
	answer := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		answer[i] = netip.MustParseAddr(a)
	}
	w.names[host] = append(w.names[host], answer)
}

// serve starts a server at an address of the world.
func (w *world) serve(addrPort string, h http.HandlerFunc) {
	l := w.listen(addrPort)
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	w.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func (w *world) listen(addrPort string) *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	w.servers[netip.MustParseAddrPort(addrPort)] = l
	return l
}

func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups++
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.53:53", IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	return slices.Clone(answers[0]), nil
}

func (w *world) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, addr)
	l := w.servers[addr]
	w.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l.connect(ctx)
}

func (w *world) client(p safehttp.Policy, opts ...safehttp.Option) *safehttp.Client {
	c := safehttp.New(p, w.options(opts...)...)
	w.t.Cleanup(c.CloseIdle)
	return c
}

func (w *world) fixed(base string, opts ...safehttp.Option) *safehttp.Client {
	w.t.Helper()
	c, err := safehttp.Fixed(base, safehttp.Policy{}, w.options(opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.CloseIdle)
	return c
}

func (w *world) options(more ...safehttp.Option) []safehttp.Option {
	return append([]safehttp.Option{safehttp.WithResolver(w), safehttp.WithDial(w.dial)}, more...)
}

// dialled lists the connections made so far.
func (w *world) dialled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []string{}
	for _, d := range w.dials {
		list = append(list, d.String())
	}
	return list
}

// pipeListener accepts connections that never leave the process, so that tests
// also run on a fake clock.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) connect(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// get fetches a URL.
func get(t *testing.T, c *safehttp.Client, url string) (*safehttp.Response, error) {
	t.Helper()
	return c.Do(t.Context(), safehttp.Request{URL: url})
}

// wantReason checks the token of an error and returns it.
func wantReason(t *testing.T, err error, want fault.Reason) *safehttp.Error {
	t.Helper()
	var e *safehttp.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v (%T), want *safehttp.Error with reason %s", err, err, want)
	}
	if e.Reason != want {
		t.Fatalf("reason = %s (%v), want %s", e.Reason, err, want)
	}
	return e
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func redirect(status int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}
