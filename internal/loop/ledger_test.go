package loop_test

import (
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
