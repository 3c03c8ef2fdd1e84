package router_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// lossy is a TCP connection to the database that swallows answers of
// gate_reserve: what it did is committed, and the connection is cut before
// anybody is told.
type lossy struct {
	URL  string
	lose atomic.Int64  // how many answers that say "go"
	lost chan struct{} // one for each
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	cfg, err := pgconn.ParseConfig(postgrestest.CloneURL(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	through := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Path: "/" + cfg.Database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), RawQuery: "sslmode=disable"}
	w := &lossy{URL: through.String(), lost: make(chan struct{}, 10)}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close()
				continue
			}
			go w.carry(server, client, false)
			go w.carry(client, server, true)
		}
	}()
	return w
}

func (w *lossy) carry(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	swallowing := false
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if answers && !swallowing && bytes.Contains(buf[:n], []byte(`"go"`)) && w.lose.Add(-1) >= 0 {
			swallowing = true
		}
		if swallowing {
			if bytes.HasSuffix(buf[:n], []byte("Z\x00\x00\x00\x05I")) { // committed, and ready for another query
				w.lost <- struct{}{}
				return
			}
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestReservationLost: the answer of gate_reserve is lost after it was
// committed. The call goes on where it can, and a key and an approval that it
// cannot use are free again.
func TestReservationLost(t *testing.T) {
	newLossyGate := func(t *testing.T) (*gate, *lossy) {
		w := newLossy(t)
		g := newGateOn(t, postgrestest.Pool(t, postgres.Config{URL: w.URL, MaxConns: 4}))
		g.unlimited()
		return g, w
	}
	approved := func(g *gate) {
		g.requireApproval()
		g.decide(g.post(write("a", "k")).wantFault(g.T, "approval_required")["approval_id"].(string), "approved")
	}
	t.Run("once: it is asked for again", func(t *testing.T) {
		for name, prepare := range map[string]func(*gate){"key": func(*gate) {}, "key and approval": approved} {
			t.Run(name, func(t *testing.T) {
				g, w := newLossyGate(t)
				prepare(g)
				w.lose.Store(1)
				g.post(write("a", "k")).wantOK(t)
				g.post(write("a", "k")).wantOK(t)
				if n := g.probe.ran.Load(); n != 1 || len(w.lost) != 1 {
					t.Errorf("ran %d times, %d answers lost", n, len(w.lost))
				}
				if n := g.count(`select count(*) from audit where kind = 'decision' and decision = 'allowed'`); n != 1 {
					t.Errorf("%d decisions recorded, want 1", n)
				}
			})
		}
	})
	t.Run("approval without a key", func(t *testing.T) {
		g, w := newLossyGate(t)
		g.requireApproval()
		g.decide(g.post(write("a", "")).wantFault(t, "approval_required")["approval_id"].(string), "approved")
		w.lose.Store(1)
		g.post(write("a", "")).wantOK(t)
		g.post(write("a", "")).wantFault(t, "approval_required") // it was used
		w.lose.Store(1)
		g.exec(`update agents set approval_required_tools = '{}'`)
		g.post(write("b", "")).wantOK(t) // neither key nor approval
		if n := g.probe.ran.Load(); n != 2 {
			t.Errorf("ran %d times", n)
		}
		if n := g.count(`select count(*) from audit where kind = 'decision' and decision = 'allowed'`); n != 2 {
			t.Errorf("%d decisions recorded, want 2", n)
		}
	})
	t.Run("twice: nothing was done and nothing stays claimed", func(t *testing.T) {
		g, w := newLossyGate(t)
		approved(g)
		w.lose.Store(2)
		f := g.post(write("a", "k")).wantFault(t, "unavailable")
		if f["retry_after_ms"] == nil || g.probe.ran.Load() != 0 {
			t.Errorf("%v, ran %d times", f, g.probe.ran.Load())
		}
		if n := g.count(`select count(*) from audit where reason = 'reservation_lost' and decision = 'refused'`); n != 1 {
			t.Errorf("%d rows say so", n)
		}
		g.post(write("a", "k")).wantOK(t)
		if n := g.probe.ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
	t.Run("the client left meanwhile", func(t *testing.T) {
		g, w := newLossyGate(t)
		w.lose.Store(2)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { <-w.lost; leave() }()
		g.post(write("a", "k"), func(r *http.Request) { *r = *r.WithContext(ctx) })
		w.lose.Store(0)
		if n := g.probe.ran.Load(); n != 0 {
			t.Fatalf("ran %d times", n)
		}
		g.post(write("a", "k")).wantOK(t)
	})
}

// TestReleaseIsFenced: a late release of one call leaves alone what another
// holds by then.
func TestReleaseIsFenced(t *testing.T) {
	g := newGate(t)
	settle := func(request string) {
		g.exec(`select gate_settle('[]', jsonb_build_array(jsonb_build_object('agent_id', 'alice', 'credential_id', 'c', 'request_id', $1::text,
			'key', 'k', 'approval_id', '', 'outcome', '{}', 'release', true)))`, request)
	}
	g.exec(`insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, deadline, request_id) values ('alice', 'c', 'k', 't', '', now(), 'second')`)
	g.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, state, used_at, used_by, expires_at)
		values ('a1', 'alice', 'c', 't', '', '', 'used', now(), 'second', now() + interval '1 hour')`)
	left := func() int {
		return g.count(`select (select count(*) from idempotency) + (select count(*) from approvals where state = 'used')`)
	}
	if settle("first"); left() != 2 {
		t.Errorf("the first call's release took what the second holds: %d of 2 left", left())
	}
	if settle("second"); left() != 0 {
		t.Errorf("its own release left %d", left())
	}
}
