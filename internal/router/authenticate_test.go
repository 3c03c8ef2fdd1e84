package router_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/catalog"
	"pawgate/internal/router"
)

type configAlias = router.Config

// away is a database that cannot be reached.
type away struct{}

var errAway = &pgconn.ConnectError{Config: &pgconn.Config{}}

func (away) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errAway
}
func (away) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errAway }
func (away) QueryRow(context.Context, string, ...any) pgx.Row        { return nil }
func (away) Begin(context.Context) (pgx.Tx, error)                   { return nil, errAway }

func newOfflineRouter(t testing.TB) *router.Router {
	t.Helper()
	tools, err := catalog.Of((&probe{}).category())
	if err != nil {
		t.Fatal(err)
	}
	return router.New(router.Config{Version: "test", Catalog: tools, DB: away{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timeout: time.Second})
}

// TestAuthentication: what is a key and what is not.
func TestAuthentication(t *testing.T) {
	g := newGate(t)
	g.exec(`update api_keys set expires_at = now() - interval '1 second' where id = 'key-bob'`)
	authorization := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	for _, c := range []struct {
		name   string
		edit   func(*http.Request)
		status int
	}{
		{"AUTH-13 lower case", authorization("bearer " + aliceKey), 200},
		{"AUTH-13 upper case", authorization("BEARER " + aliceKey), 200},
		{"AUTH-13 three blanks", authorization("Bearer   " + aliceKey), 200},
		{"AUTH-13 Basic", authorization("Basic " + aliceKey), 401},
		{"AUTH-13 Bearer alone", authorization("Bearer"), 401},
		{"AUTH-13 two headers", authorization("Bearer "+aliceKey, "Bearer "+aliceKey), 401},
		{"no header", authorization(), 401},
		{"AUTH-14 key in the query", func(r *http.Request) {
			authorization()(r)
			r.URL.RawQuery = "token=" + aliceKey + "&access_token=" + aliceKey
		}, 401},
		{"AUTH-18 shares nothing", authorization("Bearer zzz"), 401},
		{"AUTH-18 shares half", authorization("Bearer " + aliceKey[:7]), 401},
		{"AUTH-18 all but the last character", authorization("Bearer " + aliceKey[:len(aliceKey)-1] + "x"), 401},
		{"expired", as(bobKey), 401},
		{"CVE-2026-42208 SQL", authorization("Bearer ' or '1'='1"), 401},
		{"CVE-2026-34476 a header that names an agent", func(r *http.Request) {
			authorization()(r)
			r.Header.Set("X-Pawgate-Agent", "alice")
			r.Header.Set("X-GoLambdaProxy-ApiGw-Context", `{"authorizer":{"agent":"alice"}}`)
		}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.post(callBody("probe_echo", `{}`), c.edit)
			if r.Status != c.status {
				t.Fatalf("HTTP %d, want %d: %s", r.Status, c.status, r.Body)
			}
			if c.status == 401 && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("WWW-Authenticate: %q", r.Header.Get("WWW-Authenticate"))
			}
		})
	}
	t.Run("AUTH-21 GHSA-wg4g-395p-mqv3 no key in a log or audit row", func(t *testing.T) {
		if strings.Contains(g.log.String(), aliceKey[:len(aliceKey)-1]) {
			t.Error("the log holds a key")
		}
		if n := g.count(`select count(*) from audit where audit::text like '%paw_test_%'`); n != 0 {
			t.Errorf("%d audit rows hold a key", n)
		}
		if n := g.count(`select count(*) from audit where decision = 'refused' and reason in ('no_key', 'bad_key')`); n != 11 {
			t.Errorf("%d refused logins on record", n)
		}
	})
}

// TestRevocation: AUTH-08, AUTH-09, A8: what is taken away is gone with the
// next call, on every instance.
func TestRevocation(t *testing.T) {
	g := newGate(t)
	second := newSecondInstance(g)
	both := func(check func(reply)) {
		for _, r := range []*router.Router{g.router, second} {
			first := g.router
			g.router = r
			check(g.post(callBody("probe_echo", `{}`), as(bobKey)))
			g.router = first
		}
	}
	both(func(r reply) { r.wantOK(t) })
	g.exec(`update agents set allowed_tools = '{probe_slow}' where id = 'bob'`)
	both(func(r reply) { r.wantError(t, 200, -32602, "unknown tool") })
	g.exec(`update agents set allowed_tools = '{*}' where id = 'bob'`)
	both(func(r reply) { r.wantOK(t) })
	g.exec(`update agents set state = 'paused' where id = 'bob'`)
	both(func(r reply) { r.wantFault(t, "agent_inactive") })
	g.exec(`update agents set state = 'active' where id = 'bob'`)
	g.exec(`update api_keys set revoked_at = now() where id = 'key-bob'`)
	both(func(r reply) {
		if r.Status != 401 {
			t.Errorf("HTTP %d after revocation", r.Status)
		}
	})
}

func newSecondInstance(g *gate) *router.Router { return router.New(g.router.Config) }

// TestStop: a stop covers every door with the next call and lets its own tool
// through.
func TestStop(t *testing.T) {
	g := newGate(t)
	g.exec(`insert into stops (agent_id, reason, stopped_by) values ('bob', 'spending', 'op')`)
	f := g.post(callBody("probe_echo", `{}`), as(bobKey)).wantFault(t, "stopped")
	if !strings.Contains(f["error"].(string), "spending") || !strings.Contains(f["error"].(string), "operator") {
		t.Errorf("fault: %v", f)
	}
	g.post(callBody("probe_stop", `{}`), as(bobKey)).wantOK(t)
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
	g.exec(`insert into stops (agent_id, stopped_by) values (null, 'op')`)
	g.post(callBody("probe_echo", `{}`)).wantFault(t, "stopped")
	g.post(callBody("nope", `{}`)).wantFault(t, "stopped") // a stop tells nothing of which tools there are
	g.router = newSecondInstance(g)                        // it survives a restart
	g.post(callBody("probe_echo", `{}`)).wantFault(t, "stopped")
	t.Run("the stdio door", func(t *testing.T) {
		g.post(callBody("probe_echo", `{}`), func(r *http.Request) {
			r.Header.Del("Authorization")
			*r = *r.WithContext(router.NewLocalDoor("alice").Open(r.Context()))
		}).wantFault(t, "stopped")
	})
	g.exec(`update stops set resumed_at = now()`)
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
}

// TestStopDuringCall: AUTH-16: a call that is under way is ended, on whichever
// instance it runs.
func TestStopDuringCall(t *testing.T) {
	g := newGate(t)
	done := make(chan reply, 1)
	go func() { done <- g.post(callBody("probe_slow", `{}`), as(bobKey)) }()
	waitFor(t, func() bool { return g.probe.ran.Load() == 1 })
	g.exec(`insert into stops (agent_id, reason, stopped_by) values ('bob', 'enough', 'op')`)
	stopped := time.Now()
	(<-done).wantFault(t, "stopped")
	t.Logf("ended after %s", time.Since(stopped))
	if n := g.count(`select count(*) from audit where tool = 'probe_slow' and outcome = 'fault' and reason = 'stopped'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

// TestRevokedDuringCall: a key that is revoked while its call runs is refused
// with the next.
func TestRevokedDuringCall(t *testing.T) {
	g := newGate(t)
	done := make(chan reply, 1)
	go func() { done <- g.post(callBody("probe_slow", `{}`), as(bobKey)) }()
	waitFor(t, func() bool { return g.probe.ran.Load() == 1 })
	g.exec(`update api_keys set revoked_at = now() where id = 'key-bob'`)
	if r := g.post(callBody("probe_echo", `{}`), as(bobKey)); r.Status != 401 {
		t.Errorf("HTTP %d", r.Status)
	}
	close(g.probe.release)
	(<-done).wantOK(t) // it was allowed when it began
}

// TestLists: AUTH-02, AUTH-05: deny wins, nothing is allowed by default.
func TestLists(t *testing.T) {
	g := newGate(t)
	for _, c := range []struct {
		name, allowed, denied string
		works                 bool
	}{
		{"AUTH-02 no row names it", `{other_tool}`, `{}`, false},
		{"AUTH-05 on both lists", `{probe_echo}`, `{probe_echo}`, false},
		{"AUTH-05 everything but a family", `{*}`, `{probe_*}`, false},
		{"AUTH-06 empty", `{}`, `{}`, false},
		{"a family", `{probe_*}`, `{}`, true},
		{"everything", `{*}`, `{}`, true},
		{"the name", `{probe_echo}`, `{}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.exec(`update agents set allowed_tools = $1::text[], denied_tools = $2::text[] where id = 'bob'`, c.allowed, c.denied)
			r := g.post(callBody("probe_echo", `{}`), as(bobKey))
			if c.works {
				r.wantOK(t)
			} else {
				r.wantError(t, 200, -32602, "unknown tool: probe_echo")
			}
		})
	}
	t.Run("a scope that is missing looks unknown", func(t *testing.T) {
		g.exec(`update api_keys set scopes = '{probe:read}' where id = 'key-alice'`)
		g.post(callBody("probe_echo", `{}`)).wantOK(t)
		g.post(callBody("probe_write", `{"input":"x"}`)).wantError(t, 200, -32602, "unknown tool")
	})
}

// TestDatabaseAway: AUTH-07: nothing is allowed while the database is away.
func TestDatabaseAway(t *testing.T) {
	g := newGate(t)
	g.router = newOfflineRouter(t)
	for _, body := range []string{callBody("probe_echo", `{}`), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`} {
		r := g.post(body)
		r.wantError(t, 503, -32603, "try again")
		if r.Header.Get("Retry-After") != "2" || r.Error.Data["reason"] != "unavailable" || string(r.ID) != "7" {
			t.Errorf("not a retryable error: %v %s", r.Header, r.Body)
		}
	}
	if g.probe.ran.Load() != 0 {
		t.Error("a call ran")
	}
}

// TestAudit: a row for every call and every refusal, without secrets.
func TestAudit(t *testing.T) {
	g := newGate(t)
	g.post(callBody("probe_echo", `{"text":"visible","token":"sentinel-secret"}`)).wantOK(t)
	g.post(callBody("probe_write", `{}`))
	g.post(callBody("probe_fault", `{}`))
	g.post(callBody("nope", `{"x":"sentinel-secret"}`))
	for _, want := range []string{
		`tool = 'probe_echo' and decision = 'allowed' and outcome = 'ok' and arguments->>'text' = 'visible' and arguments->>'token' = '[secret]' and agent_id = 'alice' and credential_id = 'key-alice' and door = 'http' and duration_us > 0`,
		`tool = 'probe_write' and decision = 'allowed' and outcome = 'invalid' and reason = 'input'`,
		`tool = 'probe_fault' and decision = 'allowed' and outcome = 'fault' and reason = 'probe_busy'`,
		`tool = 'nope' and decision = 'refused' and reason = 'unknown_tool'`,
	} {
		if n := g.count(`select count(*) from audit where ` + want); n != 1 {
			t.Errorf("%d rows with %s", n, want)
		}
	}
	if n := g.count(`select count(*) from audit where audit::text like '%sentinel%'`); n != 0 || strings.Contains(g.log.String(), "sentinel") {
		t.Errorf("H68: the secret is in %d rows or in the log", n)
	}
	if n := g.count(`select count(*) from api_keys where id = 'key-alice' and last_used_at is not null`); n != 1 {
		t.Error("last_used_at is not kept")
	}
}

// TestAuditUnderLoad: no acknowledged call is without its row.
func TestAuditUnderLoad(t *testing.T) {
	g := newGate(t)
	g.unlimited()
	const clients, calls = 16, 25
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for range calls {
				g.post(callBody("probe_echo", `{}`)).wantOK(t)
			}
		})
	}
	group.Wait()
	if n := g.count(`select count(*) from audit where outcome = 'ok'`); n != clients*calls {
		t.Errorf("%d rows for %d calls", n, clients*calls)
	}
}

// TestUnrecorded: a call whose row cannot be written is not acknowledged, and
// a write does not even begin.
func TestUnrecorded(t *testing.T) {
	g := newGate(t)
	g.probe.onWrite = func() { g.exec(`alter table audit rename to audit_gone`) }
	g.post(callBody("probe_write", `{"input":"x"}`)).wantFault(t, "outcome_unknown")
	g.post(callBody("probe_write", `{"input":"y"}`)).wantFault(t, "internal")
	if n := g.probe.ran.Load(); n != 1 {
		t.Errorf("%d writes ran, want the one that could be announced", n)
	}
	g.post(callBody("probe_echo", `{}`)).wantFault(t, "internal")
	r := g.post(callBody("nope", `{}`))
	r.wantFault(t, "internal")
	if strings.Contains(r.Body, "audit_gone") {
		t.Error("a database message leaked")
	}
}
