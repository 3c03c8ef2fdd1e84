//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// TestAuditCost compares the chained rows of a call with the same rows in a
// plain table, one commit for each call and one for a hundred, in one run.
func TestAuditCost(t *testing.T) {
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 1})
	const rows = `(select jsonb_agg(jsonb_build_object('agent_id', 'bench', 'id', gen_random_uuid(), 'kind', k, 'request_id', 'r', 'door', 'http',
		'credential_id', 'bench', 'method', 'tools/call', 'tool', 'echo', 'category', 'bench', 'decision', 'allowed', 'reason', '', 'outcome', o,
		'arguments', '{"text": "hello"}'::jsonb, 'duration_us', 1)) from generate_series(1, $1::int), (values ('decision', ''), ('outcome', 'ok')) v (k, o))`
	for _, sql := range []string{
		`create table plain (like audit)`,
		`alter table plain alter seq drop not null, alter at drop not null, alter prev drop not null, alter hash drop not null`,
		`create index on plain (at desc)`, `create index on plain (id)`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	measure := func(sql string, calls int) time.Duration {
		started := time.Now()
		const repetitions = 100
		for range repetitions {
			if _, err := db.Exec(t.Context(), sql, calls); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(started) / time.Duration(repetitions*calls)
	}
	fmt.Println("| calls in a commit | chained, µs a call | plain table, µs a call | ratio |")
	fmt.Println("| --- | --- | --- | --- |")
	for _, calls := range []int{1, 100} {
		var chained, plain time.Duration
		for range rounds {
			chained += measure(`select audit_append(`+rows+`)`, calls)
			plain += measure(`insert into plain select * from jsonb_populate_recordset(null::plain, `+rows+`)`, calls)
		}
		fmt.Printf("| %d | %d | %d | %.2f |\n", calls, (chained / rounds).Microseconds(), (plain / rounds).Microseconds(), float64(chained)/float64(plain))
	}
}
