package postgres_test

import (
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// wire is a TCP connection to the database that a test can break in the ways
// that networks do.
type wire struct {
	URL     string // the database as reached through the wire
	network string
	address string

	// loseAnswer has the next answer of the server swallowed and its
	// connection cut: the statement ran, and nobody was told.
	loseAnswer atomic.Bool

	mu    sync.Mutex
	pairs []*pair
}

// pair is one connection through the wire.
type pair struct {
	client, server net.Conn
	deaf           atomic.Bool // swallows everything, as a firewall that forgot the connection
}

func newWire(t *testing.T, databaseURL string) *wire {
	t.Helper()
	cfg, err := pgconn.ParseConfig(databaseURL)
	if err != nil {
		t.Fatalf("read test database: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	w.network, w.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	through := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Path: "/" + cfg.Database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), RawQuery: "sslmode=disable"}
	w.URL = through.String()
	go w.accept(l)
	t.Cleanup(func() { l.Close(); w.cut() })
	return w
}

func (w *wire) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(w.network, w.address)
		if err != nil {
			client.Close()
			continue
		}
		p := &pair{client: client, server: server}
		w.mu.Lock()
		w.pairs = append(w.pairs, p)
		w.mu.Unlock()
		go w.carry(p, server, client, false)
		go w.carry(p, client, server, true)
	}
}

// carry copies one direction until either end is gone.
func (w *wire) carry(p *pair, to, from net.Conn, answers bool) {
	defer p.client.Close()
	defer p.server.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		switch {
		case p.deaf.Load() && err == nil:
			continue
		case answers && n > 0 && w.loseAnswer.CompareAndSwap(true, false):
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// cut closes every connection, as a server that stops does.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		p.client.Close()
		p.server.Close()
	}
	w.pairs = nil
}

// deafen makes the connections there are swallow everything; new ones work.
func (w *wire) deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		p.deaf.Store(true)
	}
}

// silent is the URL of a server that accepts and says nothing.
func silent(t *testing.T, options string) string {
	t.Helper()
	return pretend(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) + options
}

// full is the URL of a server without a connection to spare.
func full(t *testing.T) string {
	t.Helper()
	return pretend(t, func(c net.Conn) {
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "53300", Message: "sorry, too many clients already"})
		_ = b.Flush()
	}) + "?sslmode=disable"
}

// pretend is the URL of a server of the test's own making.
func pretend(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return "postgres://u:hunter2@" + l.Addr().String() + "/db"
}
