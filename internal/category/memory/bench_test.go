package memory_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/category/memory"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// BenchmarkScale measures search and store with many memories of one agent
// among others. PAWGATE_SCALE lists the sizes, such as "1000,100000,1000000".
func BenchmarkScale(b *testing.B) {
	sizes := os.Getenv("PAWGATE_SCALE")
	if sizes == "" {
		sizes = "1000"
	}
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatalf("PAWGATE_SCALE: %v", err)
		}
		db := postgrestest.Clone(b)
		fill(b, db, n)
		c := tool.Category{Name: "memory", Tools: memory.New(db, time.Now).Tools}
		b.Run("search/"+size, func(b *testing.B) { measure(b, 2000, func(i int) { benchSearch(b, c, i) }) })
		b.Run("store/"+size, func(b *testing.B) { measure(b, 500, func(i int) { benchStore(b, c, i) }) })
		sizesOf(b, db)
		checkPlans(b, db)
		compareFTS5(b, n)
	}
}

// checkPlans fails when a search would read a whole table.
func checkPlans(b *testing.B, db *pgxpool.Pool) {
	b.Helper()
	terms, _ := memory.IndexOf("bench", newText(1).note())
	for name, statement := range map[string]struct {
		file string
		args pgx.NamedArgs
	}{
		"postings": {"postings.sql", pgx.NamedArgs{"terms": terms, "depth": 500, "sample_depth": 4000}},
		"rows":     {"rows.sql", pgx.NamedArgs{"agent": "bench", "shared": []int64{}, "numbers": []int32{1, 2, 3}, "excerpt": 2000}},
		"postings behind a filter": {"postings_filtered.sql", pgx.NamedArgs{"terms": terms, "depth": 500, "sample_depth": 4000, "scan_depth": 20000,
			"agent": "bench", "shared": []int64{}, "layer": "semantic", "tags": []int64{}, "since": time.Unix(0, 0), "until": time.Now()}},
		"tags": {"filter_tags.sql", pgx.NamedArgs{"agent": "bench", "shared": []int64{}, "layer": "", "tags": terms[:1], "since": time.Unix(0, 0), "until": time.Now(),
			"now": time.Now(), "limit": 10, "scan_depth": 20000}},
		"same":              {"same.sql", pgx.NamedArgs{"agent": "bench", "terms": terms, "least": 3, "depth": 64, "length": 2000, "checks": 8, "digest": []byte("x")}},
		"quota":             {"quota.sql", pgx.NamedArgs{"agent": "bench", "since": time.Now().Add(-24 * time.Hour), "any": terms[0], "max_per_day": 20000, "max_memories": 5000000, "rate": 64}},
		"candidates":        {"candidates.sql", pgx.NamedArgs{"agent": "bench", "shared": []int64{}, "numbers": []int32{1, 2, 3}, "whole": false, "now": time.Now()}},
		"latest":            {"filter_time.sql", pgx.NamedArgs{"agent": "bench", "since": time.Unix(0, 0), "until": time.Now(), "now": time.Now(), "limit": 10}},
		"latest of a layer": {"filter_layer.sql", pgx.NamedArgs{"agent": "bench", "layer": "procedural", "since": time.Unix(0, 0), "until": time.Now(), "now": time.Now(), "limit": 10}},
	} {
		sql, err := os.ReadFile(statement.file)
		if err != nil {
			b.Fatal(err)
		}
		rows, err := db.Query(b.Context(), "explain "+string(sql), statement.args)
		if err != nil {
			b.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			b.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if strings.Contains(text, "Seq Scan on memor") {
			b.Errorf("%s reads a whole table:\n%s", name, text)
		}
		if name == "latest of a layer" && !strings.Contains(text, "memories_by_layer") {
			b.Errorf("%s passes by every other layer's memories:\n%s", name, text)
		}
	}
}

// compareFTS5 measures SQLite's full-text search on the same notes and
// queries, where Python brings it along.
func compareFTS5(b *testing.B, n int) {
	b.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		b.Log("no python3: SQLite FTS5 is not compared")
		return
	}
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "%s\n", noteOf(i))
	}
	in.WriteString("\n")
	for i := range 300 {
		fmt.Fprintf(&in, "%s\n", queryOf(i))
	}
	command := exec.CommandContext(b.Context(), python, "testdata/fts5.py")
	command.Stdin = strings.NewReader(in.String())
	out, err := command.CombinedOutput()
	if err != nil {
		b.Logf("SQLite FTS5 is not compared: %v\n%s", err, out)
		return
	}
	b.Logf("SQLite FTS5, %d notes:\n%s", n, out)
}

// measure runs a fixed number of calls and reports their quantiles.
func measure(b *testing.B, calls int, call func(i int)) {
	for i := range calls / 10 {
		call(i)
	}
	times := make([]float64, calls)
	b.ResetTimer()
	for i := range calls {
		start := time.Now()
		call(calls + i)
		times[i] = float64(time.Since(start).Microseconds()) / 1000
	}
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(times[calls/2], "p50-ms")
	b.ReportMetric(times[calls*99/100], "p99-ms")
	b.ReportMetric(times[calls-1], "max-ms")
}

func benchSearch(b *testing.B, c tool.Category, i int) {
	tooltest.OK[results](b, c, tooltest.Who("bench"), "memory_search", map[string]any{"query": queryOf(i)})
}

func queryOf(i int) string {
	text := newText(uint64(i))
	queries := []string{
		text.words(2), text.words(5), text.common(3), text.chinese(2), text.chinese(6), text.common(1), text.words(1) + " " + text.chinese(2),
	}
	return queries[i%len(queries)]
}

func noteOf(i int) string { return fmt.Sprintf("note%d %s", i, newText(uint64(i)<<20).note()) }

func benchStore(b *testing.B, c tool.Category, i int) {
	store(b, c, "bench", fmt.Sprintf("new %d %s", i, newText(uint64(i)+1<<40).note()))
}

// text makes notes whose words are as unevenly frequent as those of a language.
type text struct {
	*rand.Rand
	zipf *rand.Zipf
}

func newText(seed uint64) text {
	r := rand.New(rand.NewPCG(seed, 1))
	return text{r, rand.NewZipf(r, 1.1, 4, 60_000)}
}

func (t text) word() string {
	n := t.zipf.Uint64()
	word := []byte{}
	for n++; n > 0; n /= 20 {
		word = append(word, "bcdfghklmnprstvwzjxq"[n%20], "aeiou"[n%5])
	}
	return string(word)
}

func (t text) words(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = t.word()
	}
	return strings.Join(all, " ")
}

// common are words that a tenth of all notes have.
func (t text) common(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = []string{"ca", "de", "fi", "go", "hu", "ka", "le", "mi"}[t.IntN(8)]
	}
	return strings.Join(all, " ")
}

func (t text) chinese(n int) string {
	var s strings.Builder
	for range n {
		s.WriteRune(rune(0x4E00 + t.zipf.Uint64()%3000))
	}
	return s.String()
}

func (t text) note() string {
	if t.IntN(4) == 0 {
		return t.chinese(8+t.IntN(40)) + " " + t.words(t.IntN(6))
	}
	return t.words(5 + t.IntN(30))
}

// fill writes n memories of the agent "bench" and a tenth as many of others,
// the way a bulk load does: rows first, then the index.
func fill(b *testing.B, db *pgxpool.Pool, n int) {
	b.Helper()
	addAgent(b, db, "bench", "other")
	run := func(sql string) {
		if _, err := db.Exec(b.Context(), sql); err != nil {
			b.Fatalf("%s: %v", sql, err)
		}
	}
	run(`alter table memories disable trigger user; drop index memory_terms_by_weight, memory_terms_sample`)
	columns := []string{"agent_id", "id", "content", "digest", "terms", "weights", "terms_version", "created_at"}
	start := time.Now()
	_, err := db.CopyFrom(b.Context(), pgx.Identifier{"memories"}, columns, pgx.CopyFromSlice(n+n/10, func(i int) ([]any, error) {
		agent := "bench"
		if i >= n {
			agent = "other"
		}
		content := noteOf(i)
		terms, weights := memory.IndexOf(agent, content)
		return []any{agent, fmt.Sprintf("m_%d", i), content, memory.Digest(content), terms, weights, 1, start.Add(-time.Duration(n+n/10-i) * time.Minute)}, nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	run(`insert into memory_terms (term, memory, weight)
	     select t.term, n, t.weight from memories, unnest(terms, weights) as t (term, weight)`)
	run(`create index memory_terms_by_weight on memory_terms (term, weight desc, memory desc)`)
	run(`create index memory_terms_sample on memory_terms (term) where memory % 64 = 0`)
	run(`alter table memories enable trigger user`)
	run(`vacuum analyze memories`)
	run(`vacuum analyze memory_terms`)
	b.Logf("%d memories filled in %v", n, time.Since(start).Round(time.Second))
}

func sizesOf(b *testing.B, db *pgxpool.Pool) {
	b.Helper()
	rows, err := db.Query(b.Context(), `select relname || ' ' || pg_size_pretty(pg_total_relation_size(oid) - case relkind when 'r' then pg_indexes_size(oid) else 0 end)
		from pg_class where relname like 'memor%' and relkind in ('r', 'i') order by relname`)
	if err != nil {
		b.Fatal(err)
	}
	sizes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("sizes: %s", strings.Join(sizes, ", "))
}
