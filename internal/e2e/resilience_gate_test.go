package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// These two need the gate in this process: one asks its pool of connections,
// the other takes the database away between the call and its record.

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
func probeGate(t *testing.T, db *pgxpool.Pool, backend router.Backend) *router.Router {
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
		DB: db, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timeout: time.Minute})
}

func probeCall(h http.Handler, name string) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"text":"x"}}}`, name)
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
	gate := probeGate(t, db, router.InProcess{Table: tool.Assemble(probes(func(context.Context) {
		running <- struct{}{}
		<-release
	}))})
	var wg sync.WaitGroup
	began := time.Now()
	for range calls {
		wg.Go(func() {
			if w := probeCall(gate, "probe_read"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"isError":false`) && strings.Contains(w.Body.String(), "error") {
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

// takeAway is a backend whose call comes to an outcome and takes the database
// with it, so that the outcome cannot be recorded.
type takeAway struct {
	db  *pgxpool.Pool
	out tool.Outcome
}

func (b takeAway) Call(context.Context, caller.Caller, *catalog.Entry, []byte) tool.Outcome {
	b.db.Close()
	return b.out
}

// TestResilienceUnrecorded: what an answer says of a call that could not be
// recorded. That nothing was changed is said only where that is certain.
func TestResilienceUnrecorded(t *testing.T) {
	t.Parallel()
	url := postgrestest.CloneURL(t)
	for _, c := range []struct {
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
	} {
		t.Run(c.name, func(t *testing.T) {
			db := postgrestest.Pool(t, postgres.Config{URL: url, MaxConns: 2})
			w := probeCall(probeGate(t, db, takeAway{db, c.out}), c.tool)
			var answer struct {
				Result struct {
					StructuredContent struct {
						Reason fault.Reason
						Retry  int `json:"retry_after_ms"`
					}
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("answer %s: %v", w.Body, err)
			}
			if got := answer.Result.StructuredContent; got.Reason != c.want || got.Retry == 0 {
				t.Errorf("the client is told %s, want %s", w.Body, c.want)
			}
		})
	}
}
