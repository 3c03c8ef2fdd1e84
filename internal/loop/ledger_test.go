package loop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pawgate/internal/budget"
	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
	"pawgate/internal/loop"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

// A run asks its model only while the agent's budgets have room for the most
// that the completion can take.
func TestBudgetStopsARun(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	exec := func(sql string, args ...any) {
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into agents (id, allowed_tools) values ('a', '{*}')`)
	// One micro-dollar a token.
	price := int64(1_000_000)
	if _, err := usage.TakePrices(t.Context(), db, "test", time.Now().Add(-time.Hour), []usage.Price{{Name: "m", Input: &price, Output: &price}}); err != nil {
		t.Fatal(err)
	}
	if _, err := budget.Set(t.Context(), db, budget.Budget{AgentID: "a", Period: "day", Limit: 5000, Hard: true}, "test"); err != nil {
		t.Fatal(err)
	}
	spent := func() (settled, held int64) {
		if err := db.QueryRow(t.Context(), `select sum(settled)::bigint, sum(held)::bigint from budget_spent`).Scan(&settled, &held); err != nil {
			t.Fatal(err)
		}
		return settled, held
	}
	ledger := func(o *loop.Options) { o.Meter = loop.Ledger{DB: db} }

	m := &model{turns: []any{asks(`{}`)}} // 110 tokens a round, which asks again and again
	got, err := play(t, t.Context(), nil, m, loop.Request{Limits: loop.Limits{Output: 4000}}, ledger)
	f, ok := fault.Of(err)
	if !ok || f.Reason != fault.BudgetExceeded || got.End != loop.Money || got.Rounds == 0 || got.Rounds > 10 || got.Rounds != len(m.asked) {
		t.Fatalf("%+v, %v, asked %d times", got, err, len(m.asked))
	}
	if settled, held := spent(); settled != got.Micros || held != 0 || settled > 5000 {
		t.Errorf("settled %d of %d, held %d", settled, got.Micros, held)
	}

	before, _ := spent()
	broken := &model{turns: []any{&chat.Error{Text: "no"}}}
	if _, err := play(t, t.Context(), nil, broken, loop.Request{Limits: loop.Limits{Output: 100}}, ledger); err == nil {
		t.Error("a provider that refuses is no error")
	}
	if settled, held := spent(); settled != before || held != 0 {
		t.Errorf("after a refusal settled %d, held %d", settled, held)
	}
}

// What a server says of itself that cannot be keeps nothing from being recorded,
// and nothing from being let go.
func TestRubbishUsageIsRecorded(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	if _, err := db.Exec(t.Context(), `insert into agents (id, allowed_tools) values ('a', '{*}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := budget.Set(t.Context(), db, budget.Budget{AgentID: "a", Period: "day", Limit: 1 << 40, Hard: true, Unpriced: "warn"}, "test"); err != nil {
		t.Fatal(err)
	}
	turn := words("yes")
	turn.Model = "m\x00" + strings.Repeat("é", 400)
	turn.Usage = chat.Usage{Input: -5, Output: 1 << 62, CacheRead: -1 << 63, Reasoning: 7}
	got, err := play(t, t.Context(), nil, &model{turns: []any{turn}}, loop.Request{}, func(o *loop.Options) { o.Meter = loop.Ledger{DB: db} })
	if err != nil || got.End != loop.Answered || got.Usage.Input != 0 || got.Usage.Output != 1_000_000_000_000 {
		t.Errorf("%+v, %v", got, err)
	}
	var rows, holds int
	if err := db.QueryRow(t.Context(), `select (select count(*) from usage where agent_id = 'a'), (select count(*) from budget_holds)`).Scan(&rows, &holds); err != nil || rows != 1 || holds != 0 {
		t.Errorf("%d rows, %d holds, %v", rows, holds, err)
	}
}

// What is held for a completion is not less than it comes to, whatever it is
// that the tools answered.
func TestHoldIsEnough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text          string
		bytesPerToken float64 // rather few
	}{
		"English":  {strings.Repeat("The backup ran at night and all went well. ", 100), 3.5},
		"Chinese":  {strings.Repeat("備份在夜裡執行", 100), 1.5},
		"digits":   {strings.Repeat("3141592653 ", 100), 1.2},
		"base64":   {strings.Repeat("aGVsbG8gV29ybGQ9PT0vK2ZvbyBCYXI", 100), 1.5},
		"JSON":     {strings.Repeat(`{"id":"m42","n":[1,2,{"a":null}]},`, 100), 1.7},
		"no ASCII": {strings.Repeat("\U0001f600", 100), 1.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &meter{price: 1}
			d := &door{call: func(context.Context, string) (string, bool) { return c.text, false }}
			if _, err := play(t, t.Context(), d, &model{turns: []any{asks(`{}`), words("ok")}}, loop.Request{System: c.text, Limits: loop.Limits{Output: 50}},
				func(o *loop.Options) { o.Meter = m }); err != nil {
				t.Fatal(err)
			}
			tokens := int64(float64(len(c.text)) / c.bytesPerToken)
			if len(m.held) != 2 || m.held[0].Usage.Input < tokens || m.held[1].Usage.Input < 110+tokens || m.held[1].Usage.Output != 50 {
				t.Errorf("held %+v for %d tokens", m.held, tokens)
			}
			if over := m.held[0].Usage.Input; over > int64(3*len(c.text)) {
				t.Errorf("held %d for %d bytes", over, len(c.text))
			}
		})
	}
}
