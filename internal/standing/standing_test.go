package standing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
)

// agents makes agents a, b … with two keys each, such as "a 0", and limits that
// nothing flows into.
func agents(t *testing.T, names []string, burst int) *pgxpool.Pool {
	t.Helper()
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 8})
	for _, name := range names {
		limit := fmt.Sprintf(`{"burst": %d, "per_minute": 0}`, burst)
		if _, err := db.Exec(t.Context(), `insert into agents (id, allowed_tools, limits) values ($1, '{*}', $2)`,
			name, fmt.Sprintf(`{"credential": %s, "read": %[1]s, "write": %[1]s}`, limit)); err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			key := fmt.Sprintf("%s %d", name, n)
			if _, err := db.Exec(t.Context(), `insert into api_keys (id, agent_id, hint, hash, scopes) values ($1, $2, '', $3, '{*}')`, key, name, keyed(key).KeyHash); err != nil {
				t.Fatal(err)
			}
		}
	}
	return db
}

func keyed(key string) Who {
	sum := sha256.Sum256([]byte(key))
	return Who{KeyHash: sum[:]}
}

var (
	reads  = &tool.Definition{Name: "memory_read", Class: tool.ClassRead}
	writes = &tool.Definition{Name: "memory_store", Class: tool.ClassWrite}
)

// Two routers whose callers come together draw on the same buckets: none waits
// for another in a circle, and no bucket gives more than it has.
func TestBucketsAreExact(t *testing.T) {
	t.Parallel()
	const burst, callers = 30, 40
	names := []string{"a", "b", "c"}
	db := agents(t, names, burst)
	var granted [2][3]atomic.Int64 // by class and agent
	var group sync.WaitGroup
	for range 2 {
		r := NewReader(db)
		for i := range callers {
			for n, name := range names {
				for class, definition := range []*tool.Definition{reads, writes} {
					group.Go(func() {
						s, err := r.Read(t.Context(), keyed(fmt.Sprintf("%s %d", name, i%2)), definition)
						switch {
						case err != nil:
							t.Error(err)
						case s.ClassWait == 0:
							granted[class][n].Add(1)
						case s.ClassWait != 24*time.Hour:
							t.Errorf("wait is %s; nothing flows into the bucket", s.ClassWait)
						}
					})
				}
			}
		}
	}
	group.Wait()
	for class := range granted {
		for n := range names {
			if got := granted[class][n].Load(); got != burst {
				t.Errorf("class %d of agent %s granted %d calls, want %d", class, names[n], got, burst)
			}
		}
	}
}

func TestPeekTakesNothing(t *testing.T) {
	t.Parallel()
	db := agents(t, []string{"a"}, 1)
	r := NewReader(db)
	wait := func(ask func() (s time.Duration, err error)) time.Duration {
		t.Helper()
		d, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	peek := func() (time.Duration, error) {
		s, err := r.Peek(t.Context(), keyed("a 0"), reads)
		return s.ClassWait, err
	}
	read := func() (time.Duration, error) {
		s, err := r.Read(t.Context(), keyed("a 0"), reads)
		return s.ClassWait, err
	}
	for i, step := range []struct {
		ask  func() (time.Duration, error)
		want time.Duration
	}{{peek, 0}, {peek, 0}, {read, 0}, {peek, 24 * time.Hour}, {read, 24 * time.Hour}} {
		if got := wait(step.ask); got != step.want {
			t.Errorf("step %d: wait %s, want %s", i, got, step.want)
		}
	}
}

// A key's last use is noted when it was not lately, and by calls alone.
func TestLastUse(t *testing.T) {
	t.Parallel()
	db := agents(t, []string{"a"}, 10)
	r := NewReader(db)
	used := func() (at *time.Time) {
		t.Helper()
		if err := db.QueryRow(t.Context(), `select last_used_at from api_keys where id = 'a 0'`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if _, err := r.Peek(t.Context(), keyed("a 0"), reads); err != nil || used() != nil {
		t.Fatalf("a look noted a use at %v (%v)", used(), err)
	}
	if _, err := r.Read(t.Context(), keyed("a 0"), reads); err != nil || used() == nil {
		t.Fatalf("a call noted no use (%v)", err)
	}
	first := *used()
	if _, err := r.Read(t.Context(), keyed("a 0"), nil); err != nil || !used().Equal(first) {
		t.Errorf("a second use within a minute was written at %s, the first at %s (%v)", used(), first, err)
	}
	if _, err := db.Exec(t.Context(), `update api_keys set last_used_at = now() - interval '2 minutes'`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context(), keyed("a 0"), nil); err != nil || used().Before(first) {
		t.Errorf("a use after two minutes was not written: %s (%v)", used(), err)
	}
}

// Whoever is nobody is no row, in company as alone.
func TestNobody(t *testing.T) {
	t.Parallel()
	db := agents(t, []string{"a", "gone"}, 1000)
	if _, err := db.Exec(t.Context(), `update agents set state = 'archived' where id = 'gone'; update api_keys set revoked_at = now() where id = 'a 1'`); err != nil {
		t.Fatal(err)
	}
	r := NewReader(db)
	var group sync.WaitGroup
	for range 20 {
		for key, known := range map[string]bool{"a 0": true, "a 1": false, "gone 0": false, "never made": false} {
			group.Go(func() {
				s, err := r.Read(t.Context(), keyed(key), reads)
				if known && (err != nil || s.Agent.ID != "a") || !known && !errors.Is(err, pgx.ErrNoRows) {
					t.Errorf("key %q: agent %q, error %v", key, s.Agent.ID, err)
				}
			})
		}
	}
	group.Wait()
}
