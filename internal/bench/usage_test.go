//go:build bench

package bench

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/category/cost"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/usage"
)

// TestUsage asks for reports over a year of ten million rows: forty agents with
// two models and three kinds of requests each, a thousand users. It takes
// minutes and gigabytes, so only "make bench-usage" runs it.
func TestUsage(t *testing.T) {
	at, err := url.Parse(postgrestest.CloneURL(t))
	if err != nil {
		t.Fatal(err)
	}
	name := os.Getenv("PAWGATE_BENCH_USAGE") // a database of the same server, filled by an earlier run
	filled := name != ""
	if filled {
		at.Path = "/" + name
	}
	db := postgrestest.Pool(t, postgres.Config{URL: at.String(), MaxConns: 1})
	const rows = 10_000_000
	started := time.Now()
	for _, sql := range []string{
		`alter table usage disable trigger user`,
		`insert into usage (at, agent_id, user_id, session_id, request_type, provider, model, input, output, cache_read, cache_write_5m, cost_micros, price_version, source, source_id)
		 select timestamptz '2025-12-01 00:00:00+00' + (n * 3.1536) * interval '1 second', 'agent' || a, 'user' || (a * 25 + (n / 7) % 25), 'session' || n / 50,
		        (array['chat', 'chat', 'chat', 'dispatch', 'cron'])[1 + (n / 3) % 5], 'anthropic', 'claude-' || (a + (n / 11) % 2) % 6,
		        n % 3000, n % 700, n % 50000, n % 900, n % 20000, 'bench', 'loop', n::text
		 from (select n, (hashint8(n) & 1023) % 40 as a from generate_series(0, ` + fmt.Sprint(rows-1) + `) n) g`,
		`alter table usage enable trigger user`,
		`select usage_rebuild()`,
		`vacuum analyze`,
	} {
		if filled {
			break
		}
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		fmt.Printf("%.0f s: %.40s\n", time.Since(started).Seconds(), sql)
	}
	taipei, err := time.LoadLocation("Asia/Taipei")
	if err != nil {
		t.Fatal(err)
	}
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	from, to := time.Date(2025, 12, 1, 0, 7, 3, 0, time.UTC), time.Date(2026, 11, 30, 23, 52, 1, 0, time.UTC)
	year := func(q usage.Query) usage.Query { q.From, q.To = from, to; return q }
	var pid int
	if err := db.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	fmt.Println("| a year of ten million rows | lines | fastest, ms | median, ms | CPU of the database, ms |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	for _, c := range []struct {
		name string
		q    usage.Query
	}{
		{"total", year(usage.Query{})},
		{"by agent", year(usage.Query{Group: usage.ByAgent})},
		{"by model, split by agent", year(usage.Query{Group: usage.ByModel, Split: true})},
		{"by user", year(usage.Query{Group: usage.ByUser})},
		{"by month", year(usage.Query{Group: usage.ByMonth})},
		{"by day, UTC", year(usage.Query{Group: usage.ByDay})},
		{"by day, Asia/Taipei", year(usage.Query{Group: usage.ByDay, Zone: taipei})},
		{"by day, Asia/Kathmandu (+5:45)", year(usage.Query{Group: usage.ByDay, Zone: kathmandu})},
		{"by day and agent, dispatch and chat", year(usage.Query{Group: usage.ByDay, Split: true, Types: []usage.RequestType{usage.Chat, usage.Dispatch}})},
		{"one agent by day, Asia/Taipei", year(usage.Query{Group: usage.ByDay, Zone: taipei, Agents: []string{"agent7"}})},
		{"one user by month", year(usage.Query{Group: usage.ByMonth, User: "user180"})},
	} {
		var took []time.Duration
		lines, used := 0, cpu(t, pid)
		for range 15 {
			began := time.Now()
			got, err := usage.Report(t.Context(), db, c.q)
			if err != nil {
				t.Fatal(err)
			}
			took, lines = append(took, time.Since(began)), len(got)
		}
		slices.Sort(took)
		fmt.Printf("| %s | %d | %.0f | %.0f | %.0f |\n", c.name, lines, took[0].Seconds()*1000, took[7].Seconds()*1000, (cpu(t, pid)-used).Seconds()*1000/float64(len(took)))
	}
	tools(t, db, to, pid)
}

// tools asks the cost tools themselves, with a budget for each agent, as one
// calls them: the widest that each takes.
func tools(t *testing.T, db postgres.DB, now time.Time, pid int) {
	for _, sql := range []string{
		`insert into agents (id) select 'agent' || n from generate_series(0, 39) n on conflict do nothing`,
		`insert into budgets (id, agent_id, period, limit_micros, hard) values ('bench', '*', 'month', 1000000000000, false) on conflict do nothing`,
		`insert into budget_spent (budget_id, began, agent_id, user_id, tool, settled)
		 select 'bench', budget_began('month', 'UTC', now()), id, '', '', 1 from agents on conflict do nothing`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	cat := cost.New(db, func() time.Time { return now })
	who := tooltest.Who("agent7")
	who.Scopes = append(who.Scopes, caller.ScopeOperator)
	fmt.Println("| tool | answer, KB | fastest, ms | median, ms | CPU of the database, ms |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	for _, c := range []struct{ tool, args string }{
		{"cost_summary", `{}`},
		{"cost_summary", `{"hours":8760,"compare":true}`},
		{"cost_summary", `{"hours":8760,"group_by":"day","timezone":"Asia/Taipei","compare":true}`},
		{"cost_summary", `{"hours":8760,"group_by":"model"}`},
		{"cost_summary", `{"hours":744,"group_by":"hour","agent_id":"agent7"}`},
		{"cost_agents", `{"hours":8760}`},
		{"cost_users", `{"hours":8760}`},
		{"cost_users", `{"hours":8760,"agent_id":"agent7"}`},
		{"cost_recent", `{"limit":500}`},
		{"cost_recent", `{"limit":500,"agent_id":"agent7"}`},
		{"cost_multi_vs_single", `{"days":30,"timezone":"Asia/Taipei"}`},
		{"cost_multi_vs_single", `{"days":365}`},
		{"cost_multi_vs_single", `{"days":365,"agent_id":"agent7"}`},
		{"reliability_summary", `{"agent_id":"agent7"}`},
		{"reliability_summary", `{"agent_id":"agent7","window_days":365}`},
	} {
		var took []time.Duration
		size, used := 0, cpu(t, pid)
		for range 9 {
			began := time.Now()
			out := tooltest.Call(t, cat, who, c.tool, c.args)
			took = append(took, time.Since(began))
			if out.OK == nil {
				t.Fatalf("%s %s: %+v", c.tool, c.args, out)
			}
			size = len(out.OK)
		}
		slices.Sort(took)
		fmt.Printf("| %s `%s` | %d | %.0f | %.0f | %.0f |\n", c.tool, c.args, size>>10, took[0].Seconds()*1000, took[4].Seconds()*1000,
			(cpu(t, pid)-used).Seconds()*1000/float64(len(took)))
	}
}

// cpu is the time that a process on this machine has had a processor, which
// other work there does not lengthen; 0 where there is no /proc.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("read %s", stat)
	}
	return time.Duration(user+system) * time.Second / 100 // USER_HZ
}
