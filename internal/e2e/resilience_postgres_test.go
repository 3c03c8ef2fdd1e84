//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	privatedb "pawgate/local/database"
)

// recoveryBound is how soon after the database is back a call must succeed.
const recoveryBound = 3 * time.Second

// TestResilienceKilledUnderLoad: eight clients work while the database is killed
// and comes back, in three ways.
func TestResilienceKilledUnderLoad(t *testing.T) {
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL)
	unlimited(t, db.URL)
	c := newClient(p.MCP, p.newKey(t, "default"))
	for _, way := range []struct {
		name string
		end  func()
		down time.Duration
	}{
		{"kill -9", func() { db.kill(t) }, 500 * time.Millisecond},
		{"immediate stop", func() { db.stop(t, syscall.SIGQUIT) }, 0},
		{"fast stop", func() { db.stop(t, syscall.SIGINT) }, 1200 * time.Millisecond},
	} {
		t.Run(way.name, func(t *testing.T) {
			l := newLoad(way.name, c)
			var back time.Duration
			l.during(8, func() {
				time.Sleep(time.Second)
				way.end()
				time.Sleep(way.down)
				db.start(t)
				back = recovery(t, c)
				time.Sleep(time.Second)
			})
			l.verify(t, db.URL)
			t.Logf("the first call succeeded %s after the database was back", back.Round(time.Millisecond))
			if back > recoveryBound {
				t.Errorf("it took %s to recover", back)
			}
		})
	}
}

// TestResilienceKeyedWrites: a client that repeats a write under its key, until
// it has an answer, has it done once however often the database dies.
func TestResilienceKeyedWrites(t *testing.T) {
	const callTimeout = 4 * time.Second
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL, "PAWGATE_CALL_TIMEOUT="+callTimeout.String())
	unlimited(t, db.URL)
	c := newClient(p.MCP, p.newKey(t, "default"))
	k := &keyed{t: t, c: c, notes: map[string]string{}, repeats: map[string]int{}}
	done := make(chan struct{})
	var clients sync.WaitGroup
	for worker := range 8 {
		clients.Go(func() { k.work(worker, done) })
	}
	for range 4 {
		time.Sleep(700 * time.Millisecond)
		db.kill(t)
		time.Sleep(100 * time.Millisecond)
		db.start(t)
	}
	recovery(t, c)
	close(done)
	clients.Wait()
	once := 0
	for note, end := range k.notes {
		n := query[int](t, db.URL, "select coalesce(sum(times_stored), 0)::int from memories where content = $1", note)
		if end == "ok" && n != 1 || n > 1 {
			t.Errorf("%q ended with %s and was stored %d times", note, end, n)
		}
		once += n
	}
	t.Logf("%d writes, %d stored, repeated after %v; the longest took %s", len(k.notes), once, k.repeats, k.longest.Round(time.Millisecond))
	if len(k.repeats) == 0 || once == 0 {
		t.Error("nothing was repeated: nothing was tested")
	}
	if k.longest > 3*callTimeout {
		t.Errorf("a write under one key took %s", k.longest)
	}
}

// keyed are writes with an idempotency key, repeated until they are answered.
type keyed struct {
	t *testing.T
	c *client

	mu      sync.Mutex
	notes   map[string]string // how each content ended
	repeats map[string]int    // by the reason to repeat
	longest time.Duration
}

func (k *keyed) work(worker int, done <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		note := fmt.Sprintf("keyed worker %d note %d", worker, n)
		began := time.Now()
		end := k.store(note)
		k.mu.Lock()
		k.notes[note], k.longest = end, max(k.longest, time.Since(began))
		k.mu.Unlock()
	}
}

// store gives the reason that a write ended with, or "ok".
func (k *keyed) store(note string) string {
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_store","arguments":{"content":%q},"_meta":{"pawgate/idempotencyKey":%q}}}`, note, note)
	for range 1000 {
		r, err := k.c.post(message)
		if err == nil && r.ok() {
			return "ok"
		}
		if err != nil || !r.retryable() {
			// That the first attempt was lost is the one final answer besides.
			if err != nil || r.reason() != "outcome_unknown" {
				k.t.Errorf("%s: %v %s", note, err, r.body)
			}
			return r.reason()
		}
		k.mu.Lock()
		k.repeats[r.reason()]++
		k.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
	k.t.Errorf("%s: no answer after a thousand attempts", note)
	return "none"
}

// TestResiliencePrivateClusterKilled: nobody but pawgate itself restarts the
// private cluster.
func TestResiliencePrivateClusterKilled(t *testing.T) {
	dir := dataDir(t)
	p := startInstance(t, "PAWGATE_DATA="+dir)
	c := newClient(p.MCP, p.newKey(t, "default"))
	inPrivateCluster(t, dir, func(url string) { unlimited(t, url) })
	l := newLoad("private", c)
	var downs []time.Duration
	l.during(8, func() {
		for range 3 {
			time.Sleep(time.Second)
			if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
				t.Errorf("kill: %v", err)
				return
			}
			began := time.Now()
			eventually(t, 15*time.Second, "calls fail", func() bool {
				r, err := c.call("list_agents", map[string]any{})
				return err == nil && !r.ok() || time.Since(began) > 200*time.Millisecond
			})
			recovery(t, c)
			downs = append(downs, time.Since(began).Round(time.Millisecond))
		}
		time.Sleep(time.Second)
	})
	inPrivateCluster(t, dir, func(url string) { l.verify(t, url) })
	t.Logf("from each kill to the next success: %v", downs)
	for _, d := range downs {
		if d > 10*time.Second {
			t.Errorf("it took %s to recover", d)
		}
	}
}

// inPrivateCluster looks into a private cluster as one more participant.
func inPrivateCluster(t *testing.T, dir string, look func(url string)) {
	t.Helper()
	joined, err := privatedb.Start(t.Context(), privatedb.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := joined.Close(context.Background()); err != nil {
			t.Errorf("leave private cluster: %v", err)
		}
	}()
	look(joined.URL())
}

// postmaster is the first process of a private cluster's server.
func postmaster(t testing.TB, dir string) int {
	t.Helper()
	pid := 0
	eventually(t, 10*time.Second, "the private cluster has a server", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
		if err != nil {
			return false
		}
		first, _, _ := strings.Cut(string(text), "\n")
		pid, err = strconv.Atoi(first)
		return err == nil && alive(pid)
	})
	return pid
}

// TestResilienceAUTH07DatabaseHangs: a database that accepts and does not answer is
// away too. A call is refused in seconds, though it has minutes, and none is
// allowed meanwhile.
func TestResilienceAUTH07DatabaseHangs(t *testing.T) {
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL)
	unlimited(t, db.URL)
	c := newClient(p.MCP, p.newKey(t, "default"))
	recovery(t, c)
	db.signalAll(syscall.SIGSTOP) // the connection of the last call is trusted still
	resume := time.AfterFunc(8*time.Second, func() { db.signalAll(syscall.SIGCONT) })
	began := time.Now()
	r, err := c.call("memory_store", map[string]any{"content": "while it hangs"})
	took := time.Since(began)
	resume.Stop()
	db.signalAll(syscall.SIGCONT)
	t.Logf("refused after %s, the first call succeeded %s later", took.Round(time.Millisecond), recovery(t, c).Round(time.Millisecond))
	if err != nil || r.status != http.StatusServiceUnavailable || !r.retryable() || took > 6*time.Second {
		t.Errorf("AUTH-07: after %s: %v HTTP %d %s", took, err, r.status, r.body)
	}
	l := newLoad("hang", c)
	l.during(8, func() {
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			db.signalAll(syscall.SIGSTOP)
			time.Sleep(time.Second)
			db.signalAll(syscall.SIGCONT)
		}
	})
	l.verify(t, db.URL)
}
