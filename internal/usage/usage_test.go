package usage_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

var noon = time.Date(2026, 11, 3, 12, 7, 0, 0, time.UTC)

func row(id string) usage.Row {
	return usage.Row{At: noon, Agent: "bot", Provider: "anthropic", Model: "claude-test", Input: 1000, Output: 100, Source: usage.SourceLoop, ID: id}
}

func record(t *testing.T, db postgres.DB, rows ...usage.Row) usage.Recorded {
	t.Helper()
	got, err := usage.Record(t.Context(), db, rows...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// price sets what claude-test costs: 3, 15, 0.30, 3.75 and 6 dollars for a million
// tokens.
func price(t *testing.T, db postgres.DB) {
	t.Helper()
	execute(t, db, `insert into usage_prices (version, name, input, output, cache_read, cache_write_5m, cache_write_1h)
		values ('test', 'claude-test', 3000000, 15000000, 300000, 3750000, 6000000)`)
}

func execute(t *testing.T, db postgres.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](t *testing.T, db postgres.DB, sql string, args ...any) T {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestRecordOnce(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	if got := record(t, db, row("a"), row("b"), row("a")); got != (usage.Recorded{Added: 2}) {
		t.Errorf("first: %+v", got)
	}
	if got := record(t, db, row("a"), row("b")); got != (usage.Recorded{}) {
		t.Errorf("again: %+v", got)
	}
	if got := one[int64](t, db, "select sum(cost_micros)::bigint from usage"); got != 2*(3000+1500) {
		t.Errorf("cost %d", got)
	}
}

// The same answer logged while it grew counts once, with the most that was said.
func TestRecord_CTS03_one_answer_logged_twice(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	early, whole := row("msg_1"), row("msg_1")
	early.Output = 1
	if got := record(t, db, early); got.Added != 1 {
		t.Errorf("early: %+v", got)
	}
	if got := record(t, db, whole, early); got.Grown != 1 || got.Added != 0 {
		t.Errorf("whole: %+v", got)
	}
	if got := record(t, db, early); got != (usage.Recorded{}) {
		t.Errorf("early again: %+v", got)
	}
	if got := one[int64](t, db, "select sum(output)::bigint from usage"); got != 100 {
		t.Errorf("output %d, want it counted once", got)
	}
}

func TestRecord_CTS01_unknown_model_is_not_free(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	r := row("a")
	r.Model = "nobody-knows"
	record(t, db, r)
	if !one[bool](t, db, "select cost_micros is null and price_version = '' from usage") {
		t.Error("an unknown price became a cost")
	}
}

func TestRecord_CTS04_every_attempt_under_the_model_that_served(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	execute(t, db, `insert into usage_prices (version, name, input, output) values ('test', 'claude-small', 1000000, 5000000)`)
	discarded, served := row("first"), row("second")
	served.Model, served.AskedModel = "claude-small", "claude-test"
	record(t, db, discarded, served)
	if got := one[int64](t, db, "select sum(cost_micros)::bigint from usage where model = 'claude-small'"); got != 1000+500 {
		t.Errorf("served: %d", got)
	}
	if got := one[int64](t, db, "select sum(cost_micros)::bigint from usage"); got != 4500+1500 {
		t.Errorf("both attempts: %d", got)
	}
}

func TestRecord_G61_cached_tokens_are_not_plain_ones(t *testing.T) {
	t.Parallel()
	if got := usage.Plain(2000, 500, 300); got != 1200 {
		t.Errorf("plain input %d", got)
	}
}

func TestRecord_G62_writes_for_an_hour_cost_more(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	five, hour := row("five"), row("hour")
	five.Input, five.Output, five.CacheWrite = 0, 0, 1000
	hour.Input, hour.Output, hour.CacheWrite1 = 0, 0, 1000
	record(t, db, five, hour)
	for id, want := range map[string]int64{"five": 3750, "hour": 6000} {
		if got := one[int64](t, db, "select cost_micros from usage where source_id = $1", id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}

// Recording at once from many places adds up, and so do the sums.
func TestRecordConcurrently(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	price(t, db)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				// Every row is sent from two places.
				if _, err := usage.Record(t.Context(), db, row(fmt.Sprint(i/2, " ", n)), row(fmt.Sprint(i/2, "-", n))); err != nil {
					t.Error(err)
				}
				if n%7 == 0 {
					if _, err := db.Exec(t.Context(), "select usage_fold(13)"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	const want = 4 * 20 * 2
	if got := one[int64](t, db, "select count(*) from usage"); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	execute(t, db, "select usage_fold()")
	for level := range 4 {
		if got := one[int64](t, db, "select sum(cost_micros)::bigint from usage_by_agent where level = $1 and agent_id <> ''", level); got != want*4500 {
			t.Errorf("level %d: %d, want %d", level, got, want*4500)
		}
	}
	if got := one[int64](t, db, "select sum(requests)::bigint from usage_by_user where level = 3"); got != want {
		t.Errorf("users: %d", got)
	}
}

func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for name, spoil := range map[string]func(*usage.Row){
		"no agent":       func(r *usage.Row) { r.Agent = "" },
		"no id":          func(r *usage.Row) { r.ID = "" },
		"no time":        func(r *usage.Row) { r.At = time.Time{} },
		"no model":       func(r *usage.Row) { r.Model = "" },
		"negative":       func(r *usage.Row) { r.Input = -1 },
		"too many":       func(r *usage.Row) { r.CacheRead = 1 << 60 },
		"more reasoning": func(r *usage.Row) { r.Reasoning = r.Output + 1 },
		"type":           func(r *usage.Row) { r.RequestType = "gossip" },
		"a dear answer":  func(r *usage.Row) { r.Reported = new(int64(usage.MaxCost + 1)) },
		"money back":     func(r *usage.Row) { r.Reported = new(int64(-1)) },
		"NUL":            func(r *usage.Row) { r.User = "a\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			r := row("x")
			spoil(&r)
			if _, err := usage.Record(t.Context(), db, row("good"), r); err == nil {
				t.Error("it was recorded")
			}
		})
	}
	if got := one[int64](t, db, "select count(*) from usage"); got != 0 {
		t.Errorf("%d rows of a broken group were kept", got)
	}
}

// A cost that comes later is taken for an answer whose cost was not known; one
// that was known stays.
func TestRecordCostLater(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	r := row("a")
	r.Model = "nobody-knows"
	record(t, db, r)
	for _, c := range []struct{ cost, want int64 }{{700, 700}, {900, 700}} {
		r.Reported = &c.cost
		record(t, db, r)
		if got := one[int64](t, db, "select cost_micros from usage"); got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
}

// What was pruned keeps its sums, and does not come back.
func TestPrune(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	price(t, db)
	record(t, db, row("old"))
	if got := one[int64](t, db, "select usage_prune($1)", noon.Add(time.Hour)); got != 1 {
		t.Errorf("%d rows pruned", got)
	}
	if got := record(t, db, row("old")); got != (usage.Recorded{Late: 1}) {
		t.Errorf("again: %+v", got)
	}
	execute(t, db, "select usage_fold()")
	if got := one[int64](t, db, "select cost_micros from usage_by_model where level = 2"); got != 4500 {
		t.Errorf("the sum is %d", got)
	}
}
