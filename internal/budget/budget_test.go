package budget_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/budget"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

func execute(t *testing.T, db postgres.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func number(t *testing.T, db postgres.DB, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func set(t *testing.T, db postgres.DB, b budget.Budget) {
	t.Helper()
	if _, err := budget.Set(t.Context(), db, b, "test"); err != nil {
		t.Fatal(err)
	}
}

func spent(id, agent string, micros int64) usage.Row {
	return usage.Row{At: time.Now(), Agent: agent, Model: "m", Input: 1, Reported: &micros, Source: usage.SourceLoop, ID: id}
}

func refusedBy(t *testing.T, err error) *fault.Fault {
	t.Helper()
	f, ok := fault.Of(err)
	if !ok || f.Reason != "budget_exceeded" {
		t.Fatalf("want budget_exceeded, got %v", err)
	}
	return f
}

// TestHardBudget is the property: whatever 64 callers do at once, the sum of
// what is settled never passes a hard budget, and what nobody settles comes
// back.
func TestHardBudget(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	const dayLimit, monthLimit = 1_000_000, 1_400_000
	set(t, db, budget.Budget{AgentID: "*", Period: "day", Limit: dayLimit, Hard: true})
	set(t, db, budget.Budget{Period: "month", Limit: monthLimit, Hard: true})
	set(t, db, budget.Budget{UserID: "ann", Period: "day", Limit: 300_000, Hard: true})
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 9))
			agent, user := fmt.Sprint("bot", i%2), []string{"", "ann", "bob"}[i%3]
			for n := range 12 {
				most := 1 + random.Int64N(60_000)
				h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: agent, User: user, Micros: most, For: time.Hour})
				if err != nil {
					if f, ok := fault.Of(err); !ok || f.Reason != fault.BudgetExceeded {
						t.Error(err)
					}
					refused.Add(1)
					continue
				}
				granted.Add(1)
				r := spent(fmt.Sprint(i, "-", n), agent, random.Int64N(most+1))
				r.User = user
				switch n % 6 {
				case 5: // its process died
				case 4:
					err = budget.Release(t.Context(), db, h)
				default:
					_, err = budget.Settle(t.Context(), db, h, r)
					if err == nil && n%2 == 0 {
						_, err = budget.Settle(t.Context(), db, h, r) // a retry
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() == 0 || refused.Load() == 0 {
		t.Fatalf("%d granted, %d refused: this proves nothing", granted.Load(), refused.Load())
	}
	for _, agent := range []string{"bot0", "bot1"} {
		if got := number(t, db, "select coalesce(sum(cost_micros), 0)::bigint from usage where agent_id = $1", agent); got > dayLimit || got == 0 {
			t.Errorf("%s spent %d of %d", agent, got, dayLimit)
		}
	}
	if got := number(t, db, "select sum(cost_micros)::bigint from usage"); got > monthLimit {
		t.Errorf("all spent %d of %d", got, monthLimit)
	}
	if got := number(t, db, "select coalesce(sum(cost_micros), 0)::bigint from usage where user_id = 'ann'"); got > 300_000 {
		t.Errorf("ann spent %d", got)
	}
	// The counters say what the rows say.
	if got := number(t, db, `select count(*) from budget_spent s join budgets b on b.id = s.budget_id where s.settled <>
		(select coalesce(sum(u.cost_micros), 0) from usage u where (s.agent_id = '' or u.agent_id = s.agent_id) and (s.user_id = '' or u.user_id = s.user_id))`); got != 0 {
		t.Errorf("%d counters differ from the rows", got)
	}
	if got := number(t, db, "select count(*) from budget_spent s where s.held <> (select coalesce(sum(micros), 0) from budget_holds h where (h.budget_id, h.agent_id, h.user_id) = (s.budget_id, s.agent_id, s.user_id))"); got != 0 {
		t.Errorf("%d rows hold what no call holds", got)
	}
	// What was never settled comes back at its end.
	execute(t, db, "update budget_holds set until = now() - interval '1 second'")
	execute(t, db, "update budgets set limit_micros = 1000000000000")
	for _, agent := range []string{"bot0", "bot1"} {
		if _, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: agent, User: "ann", Micros: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := number(t, db, "select max(held) from budget_spent"); got > 2 {
		t.Errorf("%d are still held", got)
	}
}

// G-65: budget 1 dollar, calls of 0.40: the third is refused, with what it is,
// what is used, and when it begins anew.
func TestReserve_G65_third_call_is_refused(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{AgentID: "bot", Period: "day", Zone: "Asia/Taipei", Limit: 1_000_000, Hard: true})
	for i := range 2 {
		h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 400_000})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := budget.Settle(t.Context(), db, h, spent("a", "bot", 400_000)); err != nil {
				t.Fatal(err)
			}
		} else if h.Warn == nil || h.Warn.Held != 400_000 {
			t.Errorf("no warning past 80 %%: %+v", h.Warn)
		}
	}
	_, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 400_000})
	f := refusedBy(t, err)
	for _, want := range []string{"daily budget of agent bot", "$0.40 of $1.00 are spent", "$0.40 held", "may cost $0.40", "begins anew at"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("%q is not in: %s", want, f.Message)
		}
	}
	resets, ok := f.Fields["resets_at"].(time.Time)
	zone, _ := time.LoadLocation("Asia/Taipei")
	if !ok || resets.In(zone).Hour() != 0 || f.RetryAfter <= 0 || f.RetryAfter > 24*time.Hour || f.Fields["limit_micro_usd"] != int64(1_000_000) {
		t.Errorf("fields %v, retry after %s", f.Fields, f.RetryAfter)
	}
	if _, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "other", Micros: 400_000}); err != nil {
		t.Errorf("another agent: %v", err)
	}
	if got := number(t, db, "select held from budget_spent"); got != 400_000 {
		t.Errorf("the refused call holds something: %d", got)
	}
}

// CTS-02: a budget of 0 is a stop, not "no limit".
func TestReserve_CTS02_zero_is_a_stop(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{AgentID: "bot", Period: "month", Limit: 0, Hard: true})
	for _, micros := range []int64{0, 1} {
		_, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: micros})
		refusedBy(t, err)
	}
}

// CTS-01: what nobody knows the price of stops at a hard budget, or warns where
// the operator wants that; it is never counted as nothing.
func TestReserve_CTS01_unknown_price(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{AgentID: "bot", Period: "month", Limit: 1_000_000, Hard: true})
	unknown := budget.Ask{Agent: "bot", Most: &usage.Row{Model: "nobody-knows", Input: 1000}}
	_, err := budget.Reserve(t.Context(), db, unknown)
	if f := refusedBy(t, err); !strings.Contains(f.Message, "not known") || !strings.Contains(f.Message, "cost prices import") {
		t.Error(f.Message)
	}
	known := budget.Ask{Agent: "bot", Most: &usage.Row{Model: "claude-haiku-4-5", Input: 1000, Output: 1000}}
	h, err := budget.Reserve(t.Context(), db, known)
	if err != nil || h.Micros == nil || *h.Micros != 6250 { // 1000 in, at the price of keeping them in the cache, and 1000 out
		t.Fatalf("known: %+v, %v", h, err)
	}
	// What was used without a price counts against it too.
	r := spent("x", "bot", 0)
	r.Reported, r.Model = nil, "nobody-knows"
	if _, err := budget.Settle(t.Context(), db, h, r); err != nil {
		t.Fatal(err)
	}
	_, err = budget.Reserve(t.Context(), db, known)
	if f := refusedBy(t, err); !strings.Contains(f.Message, "nobody knows") {
		t.Error(f.Message)
	}
	set(t, db, budget.Budget{AgentID: "bot", Period: "month", Limit: 1_000_000, Hard: true, Unpriced: "warn"})
	h, err = budget.Reserve(t.Context(), db, unknown)
	if err != nil || h.Micros != nil || h.Warn == nil || h.Warn.Unpriced != 1 {
		t.Errorf("warn: %+v, %v", h, err)
	}
	// A price that comes later mends it, and is counted.
	set(t, db, budget.Budget{AgentID: "bot", Period: "month", Limit: 1_000_000, Hard: true})
	two := int64(2_000_000)
	if _, err := usage.TakePrices(t.Context(), db, "test", time.Time{}, []usage.Price{{Name: "nobody-knows", Input: &two}}); err != nil {
		t.Fatal(err)
	}
	if h, err = budget.Reserve(t.Context(), db, unknown); err != nil || *h.Micros != 2000 {
		t.Errorf("priced: %+v, %v", h, err)
	}
}

// A soft budget warns and lets pass.
func TestReserveSoft(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{Period: "week", Limit: 100, WarnPercent: 50})
	h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 49})
	if err != nil || h.Warn != nil {
		t.Errorf("below: %+v, %v", h, err)
	}
	if h, err = budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 500}); err != nil || h.Warn == nil || h.Warn.Period != "week" {
		t.Errorf("above: %+v, %v", h, err)
	}
}

// A budget that is set in the middle of its period knows what was spent before,
// also while others record.
func TestSetCountsWhatWasSpent(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 25 {
				if _, err := usage.Record(t.Context(), db, spent(fmt.Sprint(i, "-", n), "bot", 10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		set(t, db, budget.Budget{AgentID: "bot", Period: "month", Limit: 1_000_000, Hard: true})
	}
	wg.Wait()
	if got := number(t, db, "select settled from budget_spent"); got != 8*25*10 {
		t.Errorf("%d, want %d", got, 8*25*10)
	}
}

// A change of a limit lets nothing go that calls under way hold.
func TestSetKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for _, zone := range []string{"UTC", "UTC", "Asia/Kathmandu"} {
		set(t, db, budget.Budget{AgentID: "*", Period: "day", Zone: zone, Limit: 1_000_000, Hard: true})
		_, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 600_000})
		if zone == "UTC" && number(t, db, "select count(*) from budget_holds") == 1 && err == nil {
			continue
		}
		if f := refusedBy(t, err); !strings.Contains(f.Message, "$0.60 held") {
			t.Errorf("%s: %s", zone, f.Message)
		}
	}
	list, err := budget.List(t.Context(), db, nil, time.Now())
	if err != nil || len(list) != 1 || list[0].Held != 0 && list[0].Held != 600_000 {
		t.Errorf("%+v, %v", list, err)
	}
	execute(t, db, "update budget_holds set until = now() - interval '1 second'")
	if list, err = budget.List(t.Context(), db, nil, time.Now()); err != nil || list[0].Held != 0 {
		t.Errorf("over: %+v, %v", list, err)
	}
	if _, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 600_000}); err != nil {
		t.Error(err)
	}
}

// A call that began before midnight is settled after it, in the new day's
// budget, so that one has room for it.
func TestReserveOverTheEndOfAPeriod(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{AgentID: "bot", Period: "day", Limit: 1_000_000, Hard: true})
	late, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 700_000})
	if err != nil {
		t.Fatal(err)
	}
	// The day turns.
	execute(t, db, "alter table budget_holds drop constraint budget_holds_budget_id_began_agent_id_user_id_tool_fkey")
	execute(t, db, "update budget_spent set began = began - interval '1 day'")
	execute(t, db, "update budget_holds set began = began - interval '1 day'")
	_, err = budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 400_000})
	refusedBy(t, err)
	h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "bot", Micros: 300_000})
	if err != nil {
		t.Fatal(err)
	}
	for id, hold := range map[string]budget.Hold{"late": late, "new": h} {
		if _, err := budget.Settle(t.Context(), db, hold, spent(id, "bot", *hold.Micros)); err != nil {
			t.Fatal(err)
		}
	}
	if got := number(t, db, "select max(settled) from budget_spent where began > now() - interval '1 day'"); got != 1_000_000 {
		t.Errorf("%d", got)
	}
	if got := number(t, db, "select sum(held)::bigint from budget_spent"); got != 0 {
		t.Errorf("%d are held", got)
	}
}

// What an agent makes spends its maker's money: to make agents is no way to
// more of it, by whatever budget.
func TestMakersPay(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]budget.Budget{
		"by name": {AgentID: "lead", Period: "day", Limit: 1_000_000, Hard: true},
		"each":    {AgentID: "*", Period: "day", Limit: 1_000_000, Hard: true},
		"late":    {AgentID: "*", Period: "hour", Limit: 1_000_000, Hard: true}, // set when some is spent
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			execute(t, db, "insert into agents (id, created_by) values ('lead', null), ('child', 'lead'), ('grandchild', 'child'), ('other', null)")
			if name != "late" {
				set(t, db, b)
			}
			if _, err := usage.Record(t.Context(), db, spent("a", "child", 300_000), spent("b", "grandchild", 300_000), spent("c", "other", 900_000)); err != nil {
				t.Fatal(err)
			}
			if name == "late" {
				set(t, db, b)
			}
			for _, agent := range []string{"lead", "child", "grandchild"} {
				if name == "by name" || agent == "lead" {
					_, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: agent, Micros: 500_000})
					if f := refusedBy(t, err); !strings.Contains(f.Message, "of agent lead") || !strings.Contains(f.Message, "$0.60") {
						t.Errorf("%s: %s", agent, f.Message)
					}
				}
			}
			h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "grandchild", Micros: 400_000})
			if err != nil {
				t.Fatal(err)
			}
			_, err = budget.Reserve(t.Context(), db, budget.Ask{Agent: "lead", Micros: 1})
			refusedBy(t, err)
			if err := budget.Release(t.Context(), db, h); err != nil {
				t.Fatal(err)
			}
			if _, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: "lead", Micros: 400_000}); err != nil {
				t.Errorf("after the release: %v", err)
			}
			list, err := budget.List(t.Context(), db, []string{"lead"}, time.Now())
			if err != nil || len(list) != 1 || list[0].Settled != 600_000 || list[0].Held != 400_000 || list[0].Forecast == nil || *list[0].Forecast < 600_000 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// Whoever changes several rows of budgets locks them in one order, whatever it
// does: rows that are not there yet, calls that hold in some only, batches, and
// budgets that come and go.
func TestNobodyWaitsInACircle(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	execute(t, db, "insert into agents (id, created_by) values ('bot0', null), ('bot1', 'bot0'), ('bot2', 'bot1'), ('bot3', null)")
	for i := range 4 {
		set(t, db, budget.Budget{AgentID: fmt.Sprint("bot", i), Period: "month", Limit: 1 << 40, Hard: true})
	}
	set(t, db, budget.Budget{AgentID: "*", Period: "day", Limit: 1 << 40, Hard: true})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for n := range 20 {
				var err error
				agent, id := fmt.Sprint("bot", random.IntN(4)), fmt.Sprint(i, "-", n)
				switch random.IntN(8) {
				case 0:
					_, err = budget.Set(t.Context(), db, budget.Budget{UserID: "*", Period: "day", Limit: 1 << 40, Hard: true}, "test")
				case 1:
					var ids []string
					ids, err = idsOf(t, db)
					if err == nil && len(ids) > 0 {
						_, err = budget.Remove(t.Context(), db, ids[0])
					}
				case 2, 3:
					rows := []usage.Row{spent(id+"a", "bot3", 1), spent(id+"b", agent, 1), spent(id+"c", "bot1", 1)}
					for k := range rows {
						rows[k].User = fmt.Sprint("user", random.IntN(20))
					}
					_, err = usage.Record(t.Context(), db, rows...)
				case 4, 5: // as the gate ends calls: several at once, in no order
					err = throughGate(t, db, random, id)
				default:
					var h budget.Hold
					user := fmt.Sprint("user", random.IntN(20))
					if h, err = budget.Reserve(t.Context(), db, budget.Ask{Agent: agent, User: user, Micros: 5}); err == nil {
						r := spent(id, agent, 5)
						r.User = user
						_, err = budget.Settle(t.Context(), db, h, r)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := number(t, db, "select coalesce(sum(held), 0)::bigint from budget_spent"); got != 0 {
		t.Errorf("%d are held by nobody", got)
	}
}

// throughGate holds money for two calls and ends them in one statement of the
// gate's.
func throughGate(t *testing.T, db postgres.DB, random *rand.Rand, id string) error {
	type finished struct {
		Hold  string    `json:"hold"`
		Usage usage.Row `json:"usage"`
	}
	var ended []finished
	for k := range 2 {
		agent, user := fmt.Sprint("bot", random.IntN(4)), fmt.Sprint("user", random.IntN(20))
		h, err := budget.Reserve(t.Context(), db, budget.Ask{Agent: agent, User: user, Micros: 5})
		if err != nil {
			return err
		}
		r := spent(fmt.Sprint(id, "-", k), agent, 5)
		r.User = user
		ended = append(ended, finished{h.ID, r})
	}
	encoded, err := json.Marshal(ended)
	if err != nil {
		return err
	}
	_, err = db.Exec(t.Context(), "select gate_settle_paid('[]', $1)", string(encoded))
	return err
}

func idsOf(t *testing.T, db postgres.DB) ([]string, error) {
	rows, err := postgres.All[struct{ ID string }](t.Context(), db, "select id from budgets where user_id = '*'", nil)
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids, err
}

func TestListAndRemove(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	set(t, db, budget.Budget{AgentID: "*", Period: "month", Limit: 1_000_000, Hard: true})
	set(t, db, budget.Budget{Tool: "web_search", Period: "day", Limit: 50_000, Hard: true})
	if _, err := usage.Record(t.Context(), db, spent("a", "bot", 900_000)); err != nil {
		t.Fatal(err)
	}
	list, err := budget.List(t.Context(), db, nil, time.Now())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	var month budget.Standing
	for _, s := range list {
		if s.Period == "month" {
			month = s
		}
	}
	if month.AgentID != "bot" || month.Settled != 900_000 || month.State != "warned" || month.Forecast == nil || *month.Forecast < 900_000 {
		t.Errorf("%+v", month)
	}
	if list, err = budget.List(t.Context(), db, []string{"stranger"}, time.Now()); err != nil || len(list) != 2 || list[0].Settled+list[1].Settled != 0 {
		t.Errorf("of a stranger: %+v, %v", list, err)
	}
	if gone, err := budget.Remove(t.Context(), db, month.ID); err != nil || !gone {
		t.Errorf("remove: %v, %v", gone, err)
	}
	if gone, err := budget.Remove(t.Context(), db, month.ID); err != nil || gone {
		t.Errorf("remove again: %v, %v", gone, err)
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for name, b := range map[string]budget.Budget{
		"negative": {Period: "day", Limit: -1}, "period": {Period: "year", Limit: 1}, "zone": {Period: "day", Zone: "Mars", Limit: 1},
		"percent": {Period: "day", Limit: 1, WarnPercent: 101}, "unpriced": {Period: "day", Limit: 1, Unpriced: "ignore"},
	} {
		_, err := budget.Set(t.Context(), db, b, "test")
		var bad *fault.InvalidArgument
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
