//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// shim is a running `pawgate mcp-server`.
type shim struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	stderr output
	exited chan error
}

// startShim starts one that a test may end as it likes.
func startShim(t testing.TB, env []string, args ...string) *shim {
	t.Helper()
	s := &shim{cmd: exec.Command(binary(t), append([]string{"mcp-server"}, args...)...), lines: make(chan string, 1024), exited: make(chan error, 1)}
	s.cmd.Env, s.cmd.Stderr = env, &s.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.lines)
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, 16<<20)
		for scan.Scan() {
			s.lines <- scan.Text()
		}
		s.exited <- s.cmd.Wait()
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *shim) send(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(s.in, line+"\n") // a shim that ended is noticed by its missing answer
	}
}

// answer is the next line of output.
func (s *shim) answer(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			t.Fatalf("the shim ended without an answer: %s", s.stderr.String())
		}
		return line
	case <-time.After(30 * time.Second):
		t.Fatalf("the shim does not answer: %s", s.stderr.String())
	}
	return ""
}

// wait waits for the shim's end.
func (s *shim) wait(t testing.TB, bound time.Duration) error {
	t.Helper()
	go func() {
		for range s.lines { // what nobody asked for is not in the way
		}
	}()
	select {
	case err := <-s.exited:
		return err
	case <-time.After(bound):
		t.Fatalf("the shim still runs after %s: %s", bound, s.stderr.String())
	}
	return nil
}

// end closes the input, which is how a client says goodbye.
func (s *shim) end(t testing.TB) {
	t.Helper()
	_ = s.in.Close()
	if err := s.wait(t, 10*time.Second); err != nil {
		t.Errorf("the shim ended with %v: %s", err, s.stderr.String())
	}
}

// ended sends a signal and waits for the end.
func (s *shim) ended(t testing.TB, sig syscall.Signal) error {
	t.Helper()
	_ = s.cmd.Process.Signal(sig)
	return s.wait(t, 10*time.Second)
}

func callLine(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// wantAnswer: a success with this id.
func wantAnswer(t testing.TB, line string, id int) {
	t.Helper()
	var m struct{ ID int }
	var r reply
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.ID != id {
		t.Fatalf("answer %.300s, want one to %d", line, id)
	}
	if err := r.read([]byte(line)); err != nil || r.isError {
		t.Fatalf("answer %.300s, want a success", line)
	}
}

// storeForShims is a migrated database with agent default.
func storeForShims(t *testing.T) (db *postgresServer, env []string) {
	t.Helper()
	db = startPostgres(t)
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DATABASE_URL=" + db.URL}
	first := startShim(t, env)
	first.send(callLine(1, "list_agents", `{}`))
	wantAnswer(t, first.answer(t), 1)
	first.end(t)
	unlimited(t, db.URL)
	return db, env
}

// blockStores keeps every memory_store waiting until it is let go.
func blockStores(t *testing.T, url string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table memories in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	once := sync.OnceFunc(func() { _ = tx.Rollback(context.Background()); _ = conn.Close(context.Background()) })
	t.Cleanup(once)
	return once
}

// wantWaiting waits until so many statements wait for blockStores.
func wantWaiting(t *testing.T, url string, n int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("%d stores wait", n), func() bool {
		return query[int](t, url, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name <> $1`, testName) == n
	})
}

// TestResilienceShimConcurrency: a slow call blocks no fast one, and a call
// that is cancelled stops in the database and is not answered.
func TestResilienceShimConcurrency(t *testing.T) {
	db, env := storeForShims(t)
	s := startShim(t, env)
	release := blockStores(t, db.URL)
	s.send(callLine(1, "memory_store", `{"content":"slow one"}`), callLine(2, "memory_store", `{"content":"cancelled one"}`))
	wantWaiting(t, db.URL, 2)
	began := time.Now()
	for id := 3; id < 13; id++ {
		s.send(callLine(id, "list_agents", `{}`))
		wantAnswer(t, s.answer(t), id)
	}
	t.Logf("ten calls beside two slow ones took %s", time.Since(began).Round(time.Millisecond))
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	wantWaiting(t, db.URL, 1)
	release()
	wantAnswer(t, s.answer(t), 1)
	s.send(callLine(14, "list_agents", `{}`))
	wantAnswer(t, s.answer(t), 14) // and not 2
	s.end(t)
	if n := query[int](t, db.URL, "select count(*) from memories where content = 'cancelled one'"); n != 0 {
		t.Error("the cancelled call stored its memory")
	}
	if n := query[int](t, db.URL, "select count(*) from audit where kind = 'outcome' and tool = 'memory_store'"); n != 2 {
		t.Errorf("%d outcomes of the two stores are on record", n)
	}
}

// TestResilienceShimEnds: whatever ends a shim, it ends soon, and answers what
// it was asked before the input ended.
func TestResilienceShimEnds(t *testing.T) {
	db, env := storeForShims(t)
	t.Run("end of input waits for running calls", func(t *testing.T) {
		s := startShim(t, env)
		release := blockStores(t, db.URL)
		s.send(callLine(1, "memory_store", `{"content":"asked before the end"}`))
		wantWaiting(t, db.URL, 1)
		_ = s.in.Close()
		time.AfterFunc(300*time.Millisecond, release)
		wantAnswer(t, s.answer(t), 1)
		if err := s.wait(t, 5*time.Second); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String()+" ends a running call", func(t *testing.T) {
			s := startShim(t, env)
			blockStores(t, db.URL)
			s.send(callLine(1, "memory_store", `{"content":"cut off by `+sig.String()+`"}`))
			wantWaiting(t, db.URL, 1)
			began := time.Now()
			if err := s.ended(t, sig); err != nil {
				t.Errorf("it ended with %v", err)
			}
			t.Logf("it ended in %s", time.Since(began).Round(time.Millisecond))
			wantWaiting(t, db.URL, 0)
		})
	}
	t.Run("nothing is left in the database", func(t *testing.T) { wantNoSessions(t, db.URL) })
}

// wantNoSessions: no session and no lock of a process that ended is left.
func wantNoSessions(t *testing.T, url string) {
	t.Helper()
	eventually(t, 10*time.Second, "the sessions of ended processes are gone", func() bool {
		return query[int](t, url, `select count(*) from pg_stat_activity where backend_type = 'client backend' and application_name <> $1`, testName) == 0
	})
	if n := query[int](t, url, `select count(*) from pg_locks where locktype = 'advisory'`); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// TestResilienceF59ManyShims: processes start and stop by the hundred, in every
// way, and leave nothing.
func TestResilienceF59ManyShims(t *testing.T) { manyShims(t, 100) }

func manyShims(t *testing.T, count int) {
	t.Run("one database for all", func(t *testing.T) {
		db, env := storeForShims(t)
		startAndStop(t, count, env)
		wantNoSessions(t, db.URL)
	})
	t.Run("one private cluster for all", func(t *testing.T) {
		dir := dataDir(t)
		env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PAWGATE_DATA=" + dir}
		keep := startShim(t, env)
		keep.send(callLine(1, "list_agents", `{}`))
		wantAnswer(t, keep.answer(t), 1)
		inPrivateCluster(t, dir, func(url string) { unlimited(t, url) })
		startAndStop(t, count/4, env)
		keep.send(callLine(2, "list_agents", `{}`))
		wantAnswer(t, keep.answer(t), 2)
		keep.end(t)
		wantClusterDown(t, dir)
	})
}

// startAndStop starts shims four at a time, has each answer, ends each in one
// of four ways, and looks for what they left.
func startAndStop(t *testing.T, count int, env []string) {
	t.Helper()
	mark := fmt.Sprintf("PAWGATE_E2E_MARK=%d", time.Now().UnixNano())
	env = append(slices.Clone(env), mark)
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for n := range next {
				began := time.Now()
				s := startShim(t, env)
				s.send(callLine(n, "list_agents", `{}`))
				if line, ok := <-s.lines; !ok || !strings.Contains(line, `"status":"ok"`) && !strings.Contains(line, `\"status\":\"ok\"`) {
					t.Errorf("shim %d answered %.300q and said %s", n, line, s.stderr.String())
				}
				mu.Lock()
				times = append(times, time.Since(began))
				mu.Unlock()
				endSomehow(t, s, n)
			}
		})
	}
	for n := range count {
		next <- n
	}
	close(next)
	wg.Wait()
	if left := processesWith(mark); len(left) > 0 {
		t.Errorf("%d processes are left: %v", len(left), left)
	}
	slices.Sort(times)
	t.Logf("%d starts, four at a time: from exec to the first answer p50 %s, p99 %s, longest %s", count,
		times[len(times)/2].Round(time.Millisecond), times[len(times)*99/100].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

func endSomehow(t *testing.T, s *shim, n int) {
	var err error
	switch n % 4 {
	case 0:
		_ = s.in.Close()
		err = s.wait(t, 20*time.Second)
	case 1:
		err = s.ended(t, syscall.SIGTERM)
	case 2:
		err = s.ended(t, syscall.SIGINT)
	case 3:
		_ = s.ended(t, syscall.SIGKILL) // it says that it was killed
	}
	if err != nil {
		t.Errorf("shim %d ended with %v: %s", n, err, s.stderr.String())
	}
}

// processesWith are the processes whose environment or command line has a text
// in it: what a process started inherits its environment.
func processesWith(text string) []int {
	var found []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if pid, _ := strconv.Atoi(filepath.Base(dir)); pid != os.Getpid() && strings.Contains(string(environ)+"\x00"+string(cmdline), text) {
			found = append(found, pid)
		}
	}
	return found
}

// wantClusterDown: the last participant took the server with it, and no lock
// is held by anybody.
func wantClusterDown(t *testing.T, dir string) {
	t.Helper()
	eventually(t, 15*time.Second, "the private cluster is down", func() bool { return len(processesWith(dir)) == 0 })
	for _, name := range []string{"lock.control", "lock.members", "lock.server"} {
		f, err := os.Open(filepath.Join(dir, "postgres", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("%s is held: %v", name, err)
		}
		f.Close()
	}
}
