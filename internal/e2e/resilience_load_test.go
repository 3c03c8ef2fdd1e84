//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// load is mixed calls from several clients, and a record of what they were
// told, to be held against the database afterwards.
type load struct {
	clients []*client
	tag     string // begins every content, so that loads can share a database
	// killed says that serve itself is killed meanwhile: a call without an
	// answer is then one that promised nothing.
	killed bool

	mu        sync.Mutex
	ids       []string          // acknowledged memories
	content   map[string]string // by id
	untouched []string          // contents whose answer said that nothing was changed
	unknown   []string          // contents whose answer said that nobody knows
	answered  []string          // request ids of calls that succeeded
	calls     map[string]int    // by outcome
	unclear   []string          // answers that leave a client at a loss
	slowest   time.Duration
}

func newLoad(tag string, clients ...*client) *load {
	return &load{clients: clients, tag: tag, content: map[string]string{}, calls: map[string]int{}}
}

// run has n clients call until done is closed. Calls under way are finished.
func (l *load) run(n int, done <-chan struct{}) {
	var wg sync.WaitGroup
	for worker := range n {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 2))
			for step := 0; ; step++ {
				select {
				case <-done:
					return
				default:
				}
				l.step(l.clients[worker%len(l.clients)], rng, fmt.Sprintf("%s worker %d note %d 備份", l.tag, worker, step))
			}
		})
	}
	wg.Wait()
}

// during runs the load while something is done to the system.
func (l *load) during(n int, do func()) {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	l.run(n, done)
}

// step is one call: half of them writes.
func (l *load) step(c *client, rng *rand.Rand, note string) {
	switch rng.IntN(12) {
	default:
		l.one(c, "memory_store", map[string]any{"content": note}, note)
	case 6, 7:
		l.one(c, "memory_search", map[string]any{"query": "備份", "limit": 3}, "")
	case 8:
		if id := l.acknowledged(rng); id != "" {
			l.one(c, "memory_read", map[string]any{"memory_id": id}, "")
		}
	case 9:
		if id := l.acknowledged(rng); id != "" {
			l.one(c, "memory_fetch_batch", map[string]any{"ids": []string{id}}, "")
		}
	case 10:
		l.one(c, "agent_status", map[string]any{"agent_id": "default"}, "")
	case 11:
		l.one(c, "emergency_stop", map[string]any{"action": "status"}, "")
	}
}

func (l *load) acknowledged(rng *rand.Rand) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ids) == 0 {
		return ""
	}
	return l.ids[rng.IntN(len(l.ids))]
}

// one calls and keeps what the answer promised.
func (l *load) one(c *client, tool string, arguments any, note string) {
	began := time.Now()
	r, err := c.call(tool, arguments)
	l.keep(r, err, tool, note, time.Since(began))
	if !r.ok() {
		time.Sleep(10 * time.Millisecond) // as a client that was told to wait, but less patient
	}
}

// keep remembers what an answer promised; note is the content of a store.
func (l *load) keep(r reply, err error, tool, note string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	switch {
	case err != nil && l.killed:
		l.calls["no answer"]++
		if note != "" {
			l.unknown = append(l.unknown, note)
		}
	case err != nil:
		l.blame("%s: no answer after %s: %v", tool, took, err)
	case r.ok():
		l.calls["ok"]++
		if r.requestID != "" { // the stdio door tells none
			l.answered = append(l.answered, r.requestID)
		}
		if note == "" {
			return
		}
		id, _ := r.content["memory_id"].(string)
		l.ids = append(l.ids, id)
		l.content[id] = note
	case !r.retryable() && r.reason() != "deadline_exceeded": // which DESIGN gives no time to wait
		l.blame("%s: HTTP %d %s", tool, r.status, r.body)
	default:
		l.calls[fmt.Sprintf("%d %s", r.status, r.reason())]++
		switch {
		case note == "":
		case r.reason() == "unavailable":
			l.untouched = append(l.untouched, note)
		default:
			l.unknown = append(l.unknown, note)
		}
	}
}

func (l *load) blame(format string, args ...any) {
	l.calls["unclear"]++
	l.unclear = append(l.unclear, fmt.Sprintf(format, args...))
}

// verify holds every promise against the database, and reports the counts.
func (l *load) verify(t *testing.T, url string) {
	t.Helper()
	for _, u := range l.unclear[:min(len(l.unclear), 10)] {
		t.Errorf("neither a success nor a clear error that can be retried: %s", u)
	}
	l.verifyFound(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	stored := l.verifyStored(t, conn)
	l.verifyAudit(t, conn)
	outcomes := slices.SortedFunc(maps.Keys(l.calls), cmp.Compare[string])
	for i, o := range outcomes {
		outcomes[i] = fmt.Sprintf("%s %d", o, l.calls[o])
	}
	t.Logf("calls: %s; %d memories acknowledged, %d of %d of unknown outcome were stored; slowest call %s",
		strings.Join(outcomes, ", "), len(l.ids), stored, len(l.unknown), l.slowest.Round(time.Millisecond))
	if len(l.ids) == 0 {
		t.Error("no memory was stored: nothing was tested")
	}
}

// verifyFound asks the product for every acknowledged memory.
func (l *load) verifyFound(t *testing.T) {
	t.Helper()
	lost := 0
	for batch := range slices.Chunk(l.ids, 100) {
		r, err := l.clients[0].call("memory_fetch_batch", map[string]any{"ids": batch})
		if err != nil || !r.ok() {
			t.Fatalf("fetch what was stored: %v %s", err, r.body)
		}
		found := map[string]bool{}
		memories, _ := r.content["memories"].([]any)
		for _, m := range memories {
			memory, _ := m.(map[string]any)
			id, _ := memory["id"].(string)
			found[id] = memory["content"] == l.content[id]
		}
		for _, id := range batch {
			if !found[id] {
				lost++
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged memories are lost", lost, len(l.ids))
	}
}

// verifyStored: a content was sent once, so it is there once if that was
// acknowledged, not at all if the answer said so, and at most once otherwise.
// It gives how many of unknown outcome are there.
func (l *load) verifyStored(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select content, sum(times_stored)::int from memories where content like $1 group by content`, l.tag+" %")
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	var content string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&content, &n}, func() error { times[content] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, id := range l.ids {
		if n := times[l.content[id]]; n != 1 {
			t.Errorf("%q was acknowledged once and stored %d times", l.content[id], n)
		}
	}
	for _, note := range l.untouched {
		if times[note] != 0 {
			t.Errorf("%q: the answer said that nothing was changed, and it is stored", note)
		}
	}
	stored := 0
	for _, note := range l.unknown {
		stored += times[note]
		if times[note] > 1 {
			t.Errorf("%q was sent once and stored %d times", note, times[note])
		}
	}
	return stored
}

// verifyAudit: every call that was answered has its one outcome on record, and
// no chain is broken.
func (l *load) verifyAudit(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var missing, doubled, broken int
	err := conn.QueryRow(t.Context(), `
		with found as (select request_id, count(*) as n from audit where kind = 'outcome' and outcome = 'ok' group by request_id)
		select count(*) filter (where n is null), count(*) filter (where n > 1), (select count(*) from audit_verify())
		from unnest($1::text[]) as asked (id) left join found on request_id = id`,
		l.answered).Scan(&missing, &doubled, &broken)
	if err != nil {
		t.Fatal(err)
	}
	if missing+doubled+broken > 0 {
		t.Errorf("of %d calls that were answered, %d have no outcome on record and %d have several; the chains are broken in %d places",
			len(l.answered), missing, doubled, broken)
	}
}

// unlimited lifts the limits of agent default, which a load would soon meet,
// and the one of memories a day, which a long one would.
func unlimited(t *testing.T, url string) {
	t.Helper()
	query[string](t, url, `update agents set limits = (
			select jsonb_object_agg(class, '{"burst": 1e9, "per_minute": 1e9}'::jsonb)
			from unnest('{credential,read,write,send,execute,expensive}'::text[]) as class)
		where id = 'default' returning id`)
	query[string](t, url, `insert into memory_limits (agent_id, max_per_day) values ('default', 100000000)
		on conflict (agent_id) do update set max_per_day = excluded.max_per_day returning agent_id`)
}

// recovery measures how long after this moment a call succeeds, and a write.
func recovery(t *testing.T, c *client) time.Duration {
	t.Helper()
	began := time.Now()
	eventually(t, 15*time.Second, "a call succeeds again", func() bool {
		r, err := c.call("list_agents", map[string]any{})
		return err == nil && r.ok()
	})
	return time.Since(began)
}
