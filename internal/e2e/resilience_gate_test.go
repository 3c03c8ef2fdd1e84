package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// These need the gate in this process: they ask its pool of connections, and
// take the database away between a call and its record.

const probeKey = "paw_local_probe-of-the-resilience-tests"

type probeArgs struct {
	Text string `json:"text" doc:"What to do"`
}

type probeResult struct {
	Text string `json:"text"`
}

// probes are a slow read and a write.
func probes(slow func(context.Context)) tool.Category {
	run := func(ctx context.Context, _ caller.Caller, a probeArgs) (probeResult, error) {
		slow(ctx)
		return probeResult(a), ctx.Err()
	}
	return tool.Category{Name: "probe", Tools: []tool.Tool{
		tool.Read("probe_read", "Read slowly.", run),
		tool.Write("probe_write", "Write.", run),
	}}
}

// probeGate is a router over one backend, with an agent that may call it
// without limits.
func probeGate(t *testing.T, db *pgxpool.Pool, through postgres.DB, backend router.Backend) *router.Router {
	t.Helper()
	tools, err := catalog.Of(probes(nil))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(probeKey))
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{`insert into agents (id, allowed_tools, limits) select 'probe', '{*}', jsonb_object_agg(class, '{"burst": 1e9, "per_minute": 1e9}'::jsonb)
			from unnest('{credential,read,write}'::text[]) as class on conflict do nothing`, nil},
		{`insert into api_keys (id, agent_id, hint, hash, scopes) values ('probe', 'probe', 'paw_local_', $1, '{*}') on conflict do nothing`, []any{sum[:]}},
	} {
		if _, err := db.Exec(t.Context(), q.sql, q.args...); err != nil {
			t.Fatal(err)
		}
	}
	return router.New(router.Config{Version: "test", Catalog: tools, Backends: map[string]router.Backend{"probe": backend},
		DB: through, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timeout: time.Minute})
}

func probeCall(h http.Handler, name, key string) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"text":"x"},"_meta":{"pawgate/idempotencyKey":%q}}}`, name, key)
	req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+probeKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// TestResilienceF56SlowCalls: two hundred slow calls at once with a pool of
// five. The gate holds no connection while a call runs, so nobody waits for
// one but to be let in and recorded.
func TestResilienceF56SlowCalls(t *testing.T) {
	t.Parallel()
	const calls, conns = 200, 5
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: conns})
	running := make(chan struct{}, calls)
	release := make(chan struct{})
	gate := probeGate(t, db, db, router.InProcess{Table: tool.Assemble(probes(func(context.Context) {
		running <- struct{}{}
		<-release
	}))})
	var wg sync.WaitGroup
	began := time.Now()
	for range calls {
		wg.Go(func() {
			if w := probeCall(gate, "probe_read", "k"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"isError":false`) && strings.Contains(w.Body.String(), "error") {
				t.Errorf("HTTP %d %s", w.Code, w.Body)
			}
		})
	}
	for range calls {
		select {
		case <-running:
		case <-time.After(20 * time.Second):
			t.Fatal("the calls wait for one another: not all of them run at once")
		}
	}
	let := time.Since(began)
	time.Sleep(1200 * time.Millisecond) // until each has looked for an emergency stop
	before := db.Stat()
	looked := time.Now()
	for range 20 { // others find the pool free, time and again
		if _, err := db.Exec(t.Context(), "select 1"); err != nil {
			t.Error(err)
		}
	}
	took, acquired, busy := time.Since(looked), db.Stat().AcquiredConns(), db.Stat().EmptyAcquireCount()-before.EmptyAcquireCount()
	close(release)
	wg.Wait()
	t.Logf("%d calls ran at once %s after the first came; beside them 20 statements took %s, there were %d waits for a connection, %d are held",
		calls, let.Round(time.Millisecond), took.Round(time.Millisecond), busy, acquired)
	if took > 2*time.Second || acquired > conns-1 {
		t.Errorf("calls hold %d connections while they run; 20 statements beside them took %s", acquired, took)
	}
}

// awayDB loses every statement for as long as it is away.
type awayDB struct {
	*pgxpool.Pool
	away atomic.Bool
}

func (d *awayDB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if d.away.Load() {
		return pgconn.CommandTag{}, io.ErrUnexpectedEOF
	}
	return d.Pool.Exec(ctx, sql, args...)
}

// TestResilienceRecordedLate: the database goes away while a write runs. Its
// record is tried until the database is back: in time for the client that
// waits, or later, so that a repetition under the same key finds the outcome.
func TestResilienceRecordedLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		away time.Duration
		want string
	}{
		{"while the client waits", time.Second, `"status\":\"ok\"`},
		{"after the client was told that nobody knows", 6500 * time.Millisecond, "outcome_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := &awayDB{Pool: postgrestest.Clone(t)}
			gate := probeGate(t, db.Pool, db, router.InProcess{Table: tool.Assemble(probes(func(context.Context) {
				db.away.Store(true)
				time.AfterFunc(c.away, func() { db.away.Store(false) })
			}))})
			if w := probeCall(gate, "probe_write", "k"); !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("answer %s, want %s", w.Body, c.want)
			}
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				var outcomes, finished int
				if err := db.QueryRow(t.Context(), `select (select count(*) from audit where kind = 'outcome' and outcome = 'ok'),
					(select count(*) from idempotency where finished_at is not null)`).Scan(&outcomes, &finished); err != nil {
					t.Fatal(err)
				}
				if outcomes == 1 && finished == 1 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d outcomes are on record, %d under their key", outcomes, finished)
				}
			}
			if w := probeCall(gate, "probe_write", "k"); !strings.Contains(w.Body.String(), `"status\":\"ok\"`) {
				t.Errorf("the repetition is answered %s", w.Body)
			}
		})
	}
}

// TestResilienceReleaseOnce: a record whose answer was lost is written again;
// the key that it released belongs to another call by then.
func TestResilienceReleaseOnce(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	const rows = `[{"id": "019aa000-0000-7000-8000-000000000001", "kind": "outcome", "request_id": "r", "door": "http", "agent_id": "a",
		"credential_id": "c", "method": "tools/call", "tool": "t", "category": "p", "decision": "allowed", "reason": "unavailable", "outcome": "fault", "duration_us": 1}]`
	const finished = `[{"agent_id": "a", "credential_id": "c", "key": "k", "approval_id": "", "outcome": "{}", "release": true}]`
	claimed := func() (n int) {
		t.Helper()
		if err := db.QueryRow(t.Context(), "select count(*) from idempotency").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, again := range []bool{false, true} {
		if _, err := db.Exec(t.Context(), `insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, deadline) values ('a', 'c', 'k', 't', '', now())`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), "select gate_settle($1::jsonb, $2::jsonb, $3)", rows, finished, again); err != nil {
			t.Fatal(err)
		}
		if n := claimed(); again != (n == 1) {
			t.Errorf("again %v: %d keys are claimed", again, n)
		}
	}
}

// answers is a backend whose every call comes to the same outcome.
type answers struct{ out tool.Outcome }

func (b answers) Call(context.Context, caller.Caller, *catalog.Entry, []byte) tool.Outcome {
	return b.out
}

// TestResilienceUnknownIsFinal: that the outcome of a write is unknown does not
// change by asking again under its key, so the repetition does not say to.
func TestResilienceUnknownIsFinal(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	gate := probeGate(t, db, db, answers{tool.Outcome{Fault: fault.Retry(fault.OutcomeUnknown, time.Second, "the database went away")}})
	for n, retry := range []bool{true, false} {
		body := probeCall(gate, "probe_write", "k").Body.String()
		if !strings.Contains(body, `"reason":"outcome_unknown"`) || strings.Contains(body, "retry_after_ms") != retry {
			t.Errorf("answer %d: %s", n+1, body)
		}
	}
}

// takeAway is a backend whose call comes to an outcome and takes the database
// with it, so that the outcome cannot be recorded.
type takeAway struct {
	db  *awayDB
	out tool.Outcome
}

func (b takeAway) Call(context.Context, caller.Caller, *catalog.Entry, []byte) tool.Outcome {
	b.db.away.Store(true)
	return b.out
}

// TestResilienceUnrecorded: what an answer says of a call that could not be
// recorded. That nothing was changed is said only where that is certain.
func TestResilienceUnrecorded(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Clone(t)
	cases := []struct {
		name, tool string
		out        tool.Outcome
		want       fault.Reason
	}{
		{"a read", "probe_read", tool.Outcome{OK: []byte(`{}`)}, fault.Unavailable},
		{"a read that failed", "probe_read", tool.Outcome{Fault: fault.New(fault.DeadlineExceeded, "late")}, fault.Unavailable},
		{"a write", "probe_write", tool.Outcome{OK: []byte(`{}`)}, fault.OutcomeUnknown},
		{"a write whose answer was lost", "probe_write", tool.Outcome{Fault: fault.New(fault.OutcomeUnknown, "lost")}, fault.OutcomeUnknown},
		{"a write out of time", "probe_write", tool.Outcome{Fault: fault.New(fault.DeadlineExceeded, "late")}, fault.OutcomeUnknown},
		{"a write cut off", "probe_write", tool.Outcome{Fault: fault.New(fault.Cancelled, "gone")}, fault.OutcomeUnknown},
		{"a write whose function broke off", "probe_write", tool.Outcome{Fault: fault.New(fault.FunctionFailed, "broken")}, fault.OutcomeUnknown},
		{"a write that failed inside", "probe_write", tool.Outcome{Fault: fault.New(fault.Internal, "inside")}, fault.OutcomeUnknown},
		{"a write whose result was too large", "probe_write", tool.Outcome{Fault: fault.New(fault.TooLarge, "ran")}, fault.OutcomeUnknown},
		{"a write with a reason of its own", "probe_write", tool.Outcome{Fault: fault.New("channel_rejected", "half of it")}, fault.OutcomeUnknown},
		{"a write that was not sent", "probe_write", tool.Outcome{Fault: fault.New(fault.Unavailable, "away")}, fault.Unavailable},
		{"a write to what is not there", "probe_write", tool.Outcome{Fault: fault.New(fault.NotFound, "none")}, fault.Unavailable},
		{"a write with a broken argument", "probe_write", tool.Outcome{Invalid: fault.Invalid("text", "broken")}, fault.Unavailable},
	}
	answers := make([]string, len(cases))
	var wg sync.WaitGroup
	for n, c := range cases { // all at once: each waits for the database as long as a record does
		db := &awayDB{Pool: pool}
		gate := probeGate(t, pool, db, takeAway{db, c.out})
		wg.Go(func() { answers[n] = probeCall(gate, c.tool, fmt.Sprint(n)).Body.String() })
	}
	wg.Wait()
	for n, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var answer struct {
				Result struct {
					StructuredContent struct {
						Reason fault.Reason
						Retry  int `json:"retry_after_ms"`
					}
				}
			}
			if err := json.Unmarshal([]byte(answers[n]), &answer); err != nil {
				t.Fatalf("answer %s: %v", answers[n], err)
			}
			if got := answer.Result.StructuredContent; got.Reason != c.want || got.Retry == 0 {
				t.Errorf("the client is told %s, want %s", answers[n], c.want)
			}
		})
	}
}
