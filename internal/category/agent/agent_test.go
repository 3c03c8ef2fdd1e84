package agent_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/agent"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// noon is the clock of every test.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// bench is a small firm: ceo, with lead and clerk below; coder and old below
// lead; stranger beside them.
type bench struct {
	tx  pgx.Tx
	cat tool.Category
}

func setup(t *testing.T) bench {
	t.Helper()
	tx := postgrestest.New(t)
	b := bench{tx: tx, cat: agent.New(tx, clock)}
	b.exec(t, `lock table agents in share row exclusive mode`) // as the tools do: tests that share a database must not lock in another order
	b.exec(t, `insert into agents (id, display_name, role, state, model, reports_to, icon, trigger, allowed_tools, denied_tools, source) values
		('ceo', 'The Boss', 'main', 'active', 'claude-sonnet-4-6', null, 'crown', '@boss', '{*}', '{}', ''),
		('lead', 'Lead', 'team-leader', 'active', '', 'ceo', '', '', '{}', '{}', ''),
		('clerk', 'Clerk', 'worker', 'paused', '', 'ceo', '', '', '{}', '{}', ''),
		('coder', 'Coder', 'developer', 'active', '', 'lead', '', '', '{memory_*}', '{odoo_*}', 'token = "hunter2"'),
		('old', 'Old', 'worker', 'archived', '', 'lead', '', '', '{}', '{}', ''),
		('stranger', 'Stranger', 'specialist', 'active', '', null, '', '', '{}', '{}', '')`)
	return b
}

func (b bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number reads one number behind the tools' back.
func (b bench) number(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.tx.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b bench) text(t *testing.T, sql string, args ...any) string {
	t.Helper()
	var s string
	if err := b.tx.QueryRow(t.Context(), sql, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// together runs a call many times at once and gives all results.
func together[R any](n int, call func(i int) R) []R {
	results := make([]R, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = call(i) })
	}
	wg.Wait()
	return results
}

func operator() caller.Caller {
	who := tooltest.Who("stranger")
	who.Scopes = append(who.Scopes, caller.ScopeOperator)
	return who
}
