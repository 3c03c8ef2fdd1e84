package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/cost"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/usage"
)

// noon is the clock of every test.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// bench is a firm of three: lead, with clerk below, and stranger beside them.
type bench struct {
	tx  pgx.Tx
	cat tool.Category
}

func setup(t *testing.T) bench {
	t.Helper()
	tx := postgrestest.New(t)
	b := bench{tx: tx, cat: cost.New(tx, func() time.Time { return noon })}
	b.exec(t, `insert into agents (id, reports_to) values ('lead', null), ('clerk', 'lead'), ('stranger', null)`)
	b.exec(t, `insert into usage_prices (version, name, input, output, cache_read) values ('test', 'm', 1000000, 5000000, 100000)`)
	return b
}

func (b bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// spend records a request of 1000 tokens in and 100 out: 1500 micro-dollars.
func (b bench) spend(t *testing.T, agent string, ago time.Duration, change ...func(*usage.Row)) {
	t.Helper()
	r := usage.Row{At: noon.Add(-ago), Agent: agent, Model: "m", Input: 1000, Output: 100, Source: usage.SourceLoop, ID: fmt.Sprint(agent, ago)}
	for _, c := range change {
		c(&r)
	}
	if _, err := usage.Record(t.Context(), b.tx, r); err != nil {
		t.Fatal(err)
	}
}

func operator() caller.Caller {
	who := tooltest.Who("stranger")
	who.Scopes = append(who.Scopes, caller.ScopeOperator)
	return who
}

type summed struct {
	Requests  int64    `json:"requests"`
	Cost      *int64   `json:"cost_micro_usd"`
	Unpriced  int64    `json:"unpriced_requests"`
	Input     int64    `json:"input_tokens"`
	CacheRead int64    `json:"cache_read_tokens"`
	Cache     *float64 `json:"cache_efficiency"`
}

func (s summed) cost() int64 {
	if s.Cost == nil {
		return -1
	}
	return *s.Cost
}

type summaryLine struct {
	Key    *string    `json:"key"`
	Period *time.Time `json:"period"`
	summed
}

type summary struct {
	HasData bool          `json:"has_data"`
	Note    string        `json:"note"`
	Total   summed        `json:"total"`
	Lines   []summaryLine `json:"lines"`
	Before  *struct {
		HasData    bool     `json:"has_data"`
		Total      summed   `json:"total"`
		CostChange *float64 `json:"cost_change"`
	} `json:"before"`
}

func TestSummary(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spend(t, "lead", time.Hour)
	b.spend(t, "clerk", 2*time.Hour)
	b.spend(t, "stranger", time.Hour)
	b.spend(t, "clerk", 30*time.Hour)
	got := tooltest.OK[summary](t, b.cat, tooltest.Who("lead"), "cost_summary", `{"compare":true,"group_by":"agent"}`)
	if got.Total.cost() != 3000 || got.Total.Requests != 2 || !got.HasData || len(got.Lines) != 2 {
		t.Errorf("lead sees %+v", got)
	}
	if got.Before == nil || got.Before.Total.cost() != 1500 || got.Before.CostChange == nil || *got.Before.CostChange != 1 {
		t.Errorf("the day before: %+v", got.Before)
	}
	got = tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{"hours":48}`)
	if got.Total.Requests != 4 {
		t.Errorf("an operator sees %+v", got.Total)
	}
	got = tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{"agent_id":"clerk","from":"2026-11-30","timezone":"Asia/Taipei","group_by":"day"}`)
	if len(got.Lines) != 2 || got.Lines[0].Period.Format(time.RFC3339) != "2026-11-30T00:00:00+08:00" || got.Lines[1].Requests != 1 {
		t.Errorf("days in Taipei: %+v", got.Lines)
	}
	tooltest.Invalid(t, b.cat, operator(), "cost_summary", `{"hours":3,"from":"2026-11-30"}`, "from")
	tooltest.Invalid(t, b.cat, operator(), "cost_summary", `{"from":"yesterday"}`, "from")
	tooltest.Invalid(t, b.cat, operator(), "cost_summary", `{"timezone":"Mars/Olympus"}`, "timezone")
	tooltest.Invalid(t, b.cat, operator(), "cost_summary", `{"hours":87600,"group_by":"hour"}`, "group_by")
}

// AUTH-04: another agent's data needs a right, whatever the argument says.
func TestCost_AUTH04_a_foreign_agent_is_refused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spend(t, "stranger", time.Hour)
	for name, args := range map[string]string{
		"cost_summary": `{"agent_id":"stranger"}`, "cost_users": `{"agent_id":"stranger"}`, "cost_recent": `{"agent_id":"stranger"}`,
		"cost_multi_vs_single": `{"agent_id":"stranger"}`, "reliability_summary": `{"agent_id":"stranger"}`,
	} {
		foreign := tooltest.Fault(t, b.cat, tooltest.Who("lead"), name, args, fault.NotFound)
		if foreign.Message != "no agent stranger that you may see; list_agents shows those you may" {
			t.Errorf("%s: %s", name, foreign.Message)
		}
	}
	if got := tooltest.OK[summary](t, b.cat, tooltest.Who("lead"), "cost_summary", `{}`); got.Total.Requests != 0 {
		t.Errorf("lead sees %+v", got.Total)
	}
}

// No data says so; a cost that is not known is null and counted beside the sum.
func TestSummary_CTS01_unknown_and_no_data(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{}`)
	if got.HasData || got.Note == "" || got.Total.Cache != nil {
		t.Errorf("nothing: %+v", got)
	}
	unknown := func(r *usage.Row) { r.Model = "nobody-knows" }
	b.spend(t, "lead", time.Hour, unknown)
	got = tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{"compare":true}`)
	if got.Total.Cost != nil || got.Total.Unpriced != 1 || got.Note == "" {
		t.Errorf("unknown: %+v %s", got.Total, got.Note)
	}
	if got.Before.CostChange != nil {
		t.Errorf("a change of an unknown cost: %v", *got.Before.CostChange)
	}
	b.spend(t, "lead", 2*time.Hour)
	got = tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{}`)
	if got.Total.cost() != 1500 || got.Total.Unpriced != 1 {
		t.Errorf("both: %+v", got.Total)
	}
}

// G-64: tokens read from a cache and written to one are in the totals, and so is
// the part of the prompt that they were.
func TestSummary_G64_cache_tokens_are_shown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spend(t, "lead", time.Hour, func(r *usage.Row) { r.Input, r.Output, r.CacheRead, r.CacheWrite = 0, 0, 900, 100 })
	got := tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{}`)
	if got.Total.CacheRead != 900 || got.Total.Cache == nil || *got.Total.Cache != 0.9 || !got.HasData {
		t.Errorf("%+v", got.Total)
	}
}

// A thousand small requests add up: nothing is rounded to cents.
func TestSummarySmallSums(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 100 {
		b.spend(t, "lead", time.Hour, func(r *usage.Row) { r.Input, r.Output, r.ID = 35, 0, fmt.Sprint(i) })
	}
	if got := tooltest.OK[summary](t, b.cat, operator(), "cost_summary", `{}`); got.Total.cost() != 3500 {
		t.Errorf("%d micro-dollars, want 3500", got.Total.cost())
	}
}

func TestAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type result struct {
		Agents []struct {
			AgentID string `json:"agent_id"`
			Health  string `json:"cache_health"`
			summed
		} `json:"agents"`
		Note string `json:"note"`
	}
	got := tooltest.OK[result](t, b.cat, operator(), "cost_agents", `{}`)
	if got.Agents == nil || len(got.Agents) != 0 || got.Note == "" {
		t.Errorf("nothing: %+v", got)
	}
	b.spend(t, "clerk", time.Hour)
	b.spend(t, "stranger", time.Hour, func(r *usage.Row) { r.Input, r.CacheRead = 2000, 8000 })
	got = tooltest.OK[result](t, b.cat, operator(), "cost_agents", `{"hours":2}`)
	if len(got.Agents) != 2 || got.Agents[0].AgentID != "stranger" || got.Agents[0].Health != "healthy" || got.Agents[1].Health != "degraded" {
		t.Errorf("%+v", got)
	}
	if got = tooltest.OK[result](t, b.cat, tooltest.Who("clerk"), "cost_agents", `{}`); len(got.Agents) != 1 || got.Agents[0].AgentID != "clerk" {
		t.Errorf("clerk sees %+v", got)
	}
	tooltest.Invalid(t, b.cat, operator(), "cost_agents", `{"to":"2026-01-01"}`, "from")
}

func TestUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spend(t, "lead", time.Hour, func(r *usage.Row) { r.User = "ann" })
	b.spend(t, "clerk", time.Hour, func(r *usage.Row) { r.User, r.Input = "ann", 3000 })
	b.spend(t, "clerk", 2*time.Hour)
	type result struct {
		Users []struct {
			UserID *string `json:"user_id"`
			summed
		} `json:"users"`
	}
	got := tooltest.OK[result](t, b.cat, operator(), "cost_users", `{}`)
	if len(got.Users) != 2 || *got.Users[0].UserID != "ann" || got.Users[0].cost() != 5000 || got.Users[1].UserID != nil {
		t.Errorf("%+v", got)
	}
	got = tooltest.OK[result](t, b.cat, operator(), "cost_users", `{"agent_id":"lead"}`)
	if len(got.Users) != 1 || got.Users[0].cost() != 1500 {
		t.Errorf("of lead: %+v", got)
	}
	tooltest.Invalid(t, b.cat, operator(), "cost_users", `{"from":"2026-11-30","to":"2026-11-29"}`, "to")
}

// cost_recent needs no other tool to have run before, pages, and shows what the
// predecessor left out.
func TestRecent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type result struct {
		Requests []struct {
			AgentID    string `json:"agent_id"`
			UserID     string `json:"user_id"`
			Model      string `json:"model"`
			AskedModel string `json:"asked_model"`
			Cost       *int64 `json:"cost_micro_usd"`
		} `json:"requests"`
		Next string `json:"next_cursor"`
		Note string `json:"note"`
	}
	if got := tooltest.OK[result](t, b.cat, operator(), "cost_recent", `{}`); got.Requests == nil || got.Note == "" {
		t.Errorf("nothing: %+v", got)
	}
	for i := range 5 {
		b.spend(t, "lead", time.Duration(i/2)*time.Minute, func(r *usage.Row) {
			r.ID, r.User, r.AskedModel = fmt.Sprint(i), fmt.Sprint("user", i), "dearer"
		})
	}
	seen := map[string]bool{}
	args := `{"limit":2}`
	for page := 0; ; page++ {
		got := tooltest.OK[result](t, b.cat, tooltest.Who("lead"), "cost_recent", args)
		for _, r := range got.Requests {
			seen[r.UserID] = true
			if r.Cost == nil || *r.Cost != 1500 || r.AskedModel != "dearer" {
				t.Errorf("%+v", r)
			}
		}
		if got.Next == "" {
			break
		}
		if page > 5 {
			t.Fatal("it does not end")
		}
		args = fmt.Sprintf(`{"limit":2,"cursor":%q}`, got.Next)
	}
	if len(seen) != 5 {
		t.Errorf("%d requests seen", len(seen))
	}
	if got := tooltest.OK[result](t, b.cat, tooltest.Who("stranger"), "cost_recent", `{}`); len(got.Requests) != 0 {
		t.Errorf("stranger sees %+v", got)
	}
	tooltest.Invalid(t, b.cat, operator(), "cost_recent", `{"cursor":"1"}`, "cursor")
}

func TestMultiVsSingle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	as := func(kind usage.RequestType) func(*usage.Row) { return func(r *usage.Row) { r.RequestType = kind } }
	b.spend(t, "lead", time.Hour)
	b.spend(t, "clerk", 2*time.Hour, as(usage.Dispatch))
	b.spend(t, "clerk", 26*time.Hour, as(usage.Dispatch))
	b.spend(t, "clerk", 3*time.Hour, as(usage.Cron))
	b.spend(t, "clerk", 90*24*time.Hour, as(usage.Dispatch))
	type result struct {
		Dispatch, Direct summed
		Rows             []struct {
			Day, AgentID     string
			Dispatch, Direct summed
		}
		Note string
	}
	got := tooltest.OK[result](t, b.cat, operator(), "cost_multi_vs_single", `{}`)
	if got.Dispatch.cost() != 3000 || got.Direct.cost() != 1500 || len(got.Rows) != 3 {
		t.Errorf("%+v", got)
	}
	if r := got.Rows[0]; r.Day != "2026-11-30" || r.Dispatch.Requests != 1 || r.Direct.cost() != 0 {
		t.Errorf("first row %+v", r)
	}
	// Reports go as deep as they say they do.
	if got = tooltest.OK[result](t, b.cat, operator(), "cost_multi_vs_single", `{"days":365,"timezone":"Asia/Taipei"}`); got.Dispatch.Requests != 3 {
		t.Errorf("a year: %+v", got.Dispatch)
	}
	tooltest.Invalid(t, b.cat, operator(), "cost_multi_vs_single", `{"timezone":"Nowhere"}`, "timezone")
}

// Many agents over a year are more rows than an answer has room for: the last
// ones are shown, and the sums are of all.
func TestMultiVsSingleOfManyRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 1005 {
		b.spend(t, "lead", time.Hour+time.Duration(i%335)*24*time.Hour, func(r *usage.Row) { r.ID, r.Agent = fmt.Sprint(i), fmt.Sprint("bot", i/335) })
	}
	type result struct {
		Direct summed
		Rows   []struct{ Day string }
		More   int
	}
	got := tooltest.OK[result](t, b.cat, operator(), "cost_multi_vs_single", `{"days":365}`)
	if got.More != 5 || len(got.Rows) != 1000 || got.Direct.Requests != 1005 || got.Rows[999].Day != "2026-12-01" {
		t.Errorf("%d rows, %d more, %+v", len(got.Rows), got.More, got.Direct)
	}
}

type reliability struct {
	HasData bool `json:"has_data"`
	Success struct {
		Value, Lowest, Highest *float64
		Count                  int64
	} `json:"task_success_rate"`
	Consistency struct {
		Value *float64
		Count int64
	}
	Skills struct {
		Value *float64
	} `json:"skill_adoption_rate"`
	Fallback struct {
		Value *float64
		Count int64
	} `json:"fallback_rate"`
}

func TestReliability(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none := tooltest.OK[reliability](t, b.cat, tooltest.Who("lead"), "reliability_summary", `{"agent_id":"clerk"}`)
	if none.HasData || none.Success.Value != nil || none.Consistency.Value != nil || none.Fallback.Value != nil {
		t.Errorf("no data looks like a score: %+v", none)
	}
	add := func(n int, tool, category, outcome string, at time.Time) {
		b.exec(t, `insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, category, decision, outcome, reason, duration_us)
			select (select count(*) from audit) + g, '', '', 'outcome', gen_random_uuid(), $5, 'r', 'http', 'clerk', 'tools/call', $2, $3, 'allowed', $4, '', 1
			from generate_series(1, $1::int) g`, n, tool, category, outcome, at)
	}
	add(6, "memory_search", "memory", "ok", noon.Add(-time.Hour))
	add(2, "memory_search", "memory", "fault", noon.Add(-time.Hour))
	add(2, "skill_list", "skill", "replayed", noon.Add(-time.Hour))
	add(50, "memory_search", "memory", "fault", noon.AddDate(0, 0, -8))
	b.spend(t, "clerk", time.Hour)
	b.spend(t, "clerk", 2*time.Hour, func(r *usage.Row) { r.AskedModel = "dearer" })
	got := tooltest.OK[reliability](t, b.cat, tooltest.Who("lead"), "reliability_summary", `{"agent_id":"clerk"}`)
	if !got.HasData || got.Success.Count != 10 || *got.Success.Value != 0.8 || *got.Consistency.Value != 0.875 || got.Consistency.Count != 2 ||
		*got.Skills.Value != 0.2 || *got.Fallback.Value != 0.5 {
		t.Errorf("%+v", got)
	}
	// Wilson's interval for 8 of 10 at 95 %.
	if *got.Success.Lowest != 0.4902 || *got.Success.Highest != 0.9433 {
		t.Errorf("interval %v to %v", *got.Success.Lowest, *got.Success.Highest)
	}
	tooltest.Invalid(t, b.cat, operator(), "reliability_summary", `{"agent_id":"clerk","window_days":366}`, "window_days")
}

// A summary says what is left, but to no agent what single users have left.
func TestSummaryBudgets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into budgets (id, agent_id, user_id, period, limit_micros) values
		('b1', 'clerk', '', 'month', 5000), ('b2', '', '*', 'day', 1000), ('b3', 'stranger', '', 'month', 1)`)
	if _, err := usage.Record(t.Context(), b.tx, usage.Row{At: time.Now(), Agent: "clerk", User: "ann", Model: "m", Input: 1000, Output: 700, Source: "loop", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	type result struct {
		Budgets []struct {
			ID, State, UserID string
			Limit, Settled    int64
		}
	}
	got := tooltest.OK[result](t, b.cat, tooltest.Who("lead"), "cost_summary", `{}`)
	if len(got.Budgets) != 1 || got.Budgets[0].ID != "b1" || got.Budgets[0].State != "warned" || got.Budgets[0].Settled != 4500 || got.Budgets[0].Limit != 5000 {
		t.Errorf("lead sees %+v", got.Budgets)
	}
	if got = tooltest.OK[result](t, b.cat, operator(), "cost_summary", `{}`); len(got.Budgets) != 3 {
		t.Errorf("an operator sees %+v", got.Budgets)
	}
}
