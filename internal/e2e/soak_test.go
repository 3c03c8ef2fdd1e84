//go:build e2e && soak

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// soakFor is SOAK_MINUTES, ten if it is not set.
func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_MINUTES")
	if text == "" {
		return 10 * time.Minute
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || minutes <= 0 {
		t.Fatalf("SOAK_MINUTES is %q, want a number of minutes", text)
	}
	return time.Duration(minutes * float64(time.Minute))
}

// TestSoakKilled: mixed calls over HTTP and stdio for as long as asked, while
// the database and the shims are killed, stopped and cut off at random. Every
// promise of every answer is held against the database at the end.
func TestSoakKilled(t *testing.T) {
	length := soakFor(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL)
	unlimited(t, db.URL)
	l := newLoad("soak", newClient(p.MCP, p.newKey(t, "default")))
	world := &soaked{t: t, load: l, db: db, rng: rand.New(rand.NewPCG(seed, 1)), did: map[string]int{}}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DATABASE_URL=" + db.URL}
	done := make(chan struct{})
	var shims sync.WaitGroup
	for n := range 3 {
		shims.Go(func() { world.useShims(n, env, done) })
	}
	early := resources(t, p.process.Pid)
	l.during(8, func() {
		for end := time.Now().Add(length); time.Now().Before(end); {
			time.Sleep(time.Duration(1000+world.rng.IntN(3000)) * time.Millisecond)
			world.harm()
		}
		recovery(t, l.clients[0])
	})
	close(done)
	shims.Wait()
	l.verify(t, db.URL)
	late := resources(t, p.process.Pid)
	t.Logf("in %s: %v; the longest recovery took %s; serve: %s at first, %s at last", length, world.did, world.longest.Round(time.Millisecond), early, late)
	if world.longest > 10*time.Second {
		t.Errorf("a recovery took %s", world.longest)
	}
	if late.files > 400 {
		t.Errorf("serve has %d files open", late.files)
	}
	wantNoSessionsBut(t, db.URL, 16)
}

// TestSoakMemory: 16 writers and readers for as long as asked, while serve is
// killed twice, the second time together with its database.
func TestSoakMemory(t *testing.T) {
	length := soakFor(t)
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL)
	unlimited(t, db.URL)
	l := newLoad("memory", newClient(p.MCP, p.newKey(t, "default")))
	l.killed = true
	var longest time.Duration
	l.during(16, func() {
		for kills := range 2 {
			time.Sleep(length / 3)
			p.kill(t)
			if kills == 1 {
				db.kill(t)
				db.start(t)
			}
			p.start(t)
			longest = max(longest, recovery(t, l.clients[0]))
		}
		time.Sleep(length / 3)
	})
	l.verify(t, db.URL)
	t.Logf("in %s serve was killed twice; a call succeeded %s after it was healthy again", length, longest.Round(time.Millisecond))
}

// soaked is what the soak test harms.
type soaked struct {
	t    *testing.T
	load *load
	db   *postgresServer
	rng  *rand.Rand // of the goroutine that harms

	mu      sync.Mutex
	shims   [3]*shim
	did     map[string]int
	longest time.Duration
}

// harm does one harmful thing and, if that took the database away, measures
// how long calls fail after it is back.
func (w *soaked) harm() {
	down := time.Duration(w.rng.IntN(1500)) * time.Millisecond
	switch w.rng.IntN(6) {
	case 0, 1:
		w.count("kill -9 of PostgreSQL")
		w.db.kill(w.t)
	case 2:
		w.count("immediate stop")
		w.db.stop(w.t, syscall.SIGQUIT)
	case 3:
		w.count("hang")
		w.db.signalAll(syscall.SIGSTOP)
		time.Sleep(down)
		w.db.signalAll(syscall.SIGCONT)
		return
	case 4:
		w.count("sessions ended")
		terminateAll(w.t, w.db.URL)
		return
	case 5:
		w.count("kill -9 of a shim")
		w.mu.Lock()
		defer w.mu.Unlock()
		if s := w.shims[w.rng.IntN(len(w.shims))]; s != nil {
			_ = s.cmd.Process.Kill()
		}
		return
	}
	time.Sleep(down)
	w.db.start(w.t)
	w.longest = max(w.longest, recovery(w.t, w.load.clients[0]))
}

func (w *soaked) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[what]++
}

// terminateAll ends every session without waiting: others come at once.
func terminateAll(t *testing.T, url string) {
	t.Helper()
	query[int](t, url, `select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`)
}

// useShims stores through one shim after another: each is ended after some
// calls, unless it is killed before.
func (w *soaked) useShims(n int, env []string, done <-chan struct{}) {
	for step := 0; ; {
		s := startShim(w.t, env)
		w.mu.Lock()
		w.shims[n] = s
		w.mu.Unlock()
		for range 50 {
			select {
			case <-done:
				_ = s.in.Close()
				_ = s.wait(w.t, 20*time.Second)
				return
			default:
			}
			step++
			note := fmt.Sprintf("%s shim %d note %d", w.load.tag, n, step)
			if !w.throughShim(s, step, note) {
				break // it was killed, or the database was away when it started
			}
		}
		_ = s.in.Close()
		_ = s.wait(w.t, 20*time.Second)
		w.count("shims started")
		time.Sleep(100 * time.Millisecond) // one that meets no database ends at once
	}
}

// throughShim is one store; a shim that ends without an answer has made no
// promise.
func (w *soaked) throughShim(s *shim, id int, note string) bool {
	arguments, _ := json.Marshal(map[string]string{"content": note})
	began := time.Now()
	s.send(callLine(id, "memory_store", string(arguments)))
	select {
	case line, ok := <-s.lines:
		if !ok {
			w.load.mu.Lock()
			w.load.unknown = append(w.load.unknown, note)
			w.load.mu.Unlock()
			return false
		}
		r := reply{status: 200, body: line}
		err := r.read([]byte(line))
		if r.code != 0 { // the HTTP status and its header end at the shim
			r.status, r.retryAfter = 503, "2"
		}
		w.load.keep(r, err, "memory_store over stdio", note, time.Since(began))
		return true
	case <-time.After(40 * time.Second):
		w.load.keep(reply{}, fmt.Errorf("the shim is silent: %s", s.stderr.String()), "memory_store over stdio", note, time.Since(began))
		return false
	}
}

// usage is what a process holds.
type usage struct{ megabytes, files int }

func (u usage) String() string { return fmt.Sprintf("%d MB, %d files", u.megabytes, u.files) }

func resources(t *testing.T, pid int) usage {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	return usage{kilobytes / 1024, len(files)}
}

// wantNoSessionsBut: no more sessions are open than serve may have.
func wantNoSessionsBut(t *testing.T, url string, most int) {
	t.Helper()
	eventually(t, 10*time.Second, "sessions of ended shims are gone", func() bool {
		return query[int](t, url, `select count(*) from pg_stat_activity where backend_type = 'client backend' and application_name <> $1`, testName) <= most
	})
}

// TestSoakShims: F59, a thousand starts and stops.
func TestSoakShims(t *testing.T) { manyShims(t, 1000) }
