//go:build linux || darwin

package database

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// startHere joins in this process.
func startHere(t *testing.T, dir string) *Cluster {
	t.Helper()
	c, err := startHasty(t.Context(), dir)
	check(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestStart(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)

	// The folder itself is missing; it is made.
	dir = filepath.Join(dir, "made", "by", "start")
	t.Cleanup(func() { endServer(dir) })
	first, url := join(t, dir)
	pid := serverPID(t, dir)
	second, again := join(t, dir)
	here := startHere(t, dir)
	if diff := cmp.Diff([]string{url, url}, []string{again, here.URL()}); diff != "" {
		t.Errorf("urls differ (-want +got):\n%s", diff)
	}
	execute(t, url, "CREATE TABLE kept AS SELECT 42 AS n")
	first.leave()
	check(t, here.Close(t.Context()))
	if err := here.Close(t.Context()); err != nil {
		t.Errorf("a second close: %v", err)
	}
	if got := serverPID(t, dir); got != pid {
		t.Errorf("server is process %d after the starter left, want still %d", got, pid)
	}
	second.leave()
	wantDown(t, dir)

	third, url := join(t, dir)
	if n := query[int](t, url, "SELECT n FROM kept"); n != 42 {
		t.Errorf("kept row is %d, want 42", n)
	}
	third.leave()
	wantDown(t, dir)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Config{Dir: clusterDir(t)})
	check(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for name, want := range map[string]string{
		"fsync": "on", "max_connections": "200", "TimeZone": "UTC", "server_encoding": "UTF8", "listen_addresses": "", "password_encryption": "scram-sha-256", "is_superuser": "off",
		"data_checksums": "on",
	} {
		if got := query[string](t, c.URL(), "SELECT current_setting('"+name+"')"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := query[string](t, c.URL(), "SELECT datcollate || ' ' || datctype FROM pg_database WHERE datname = current_database()"); runtime.GOOS == "linux" && got != "C C.UTF-8" {
		t.Errorf("collation and character type are %q, want C and C.UTF-8", got)
	}
	execute(t, c.URL(), "CREATE EXTENSION pg_trgm")
	if n := query[int](t, c.URL(), "SELECT cardinality(show_trgm('資料備份'))"); n < 3 {
		t.Errorf("pg_trgm sees %d trigrams in Chinese text, want some", n)
	}
	execute(t, c.URL(), "CREATE DATABASE a_test_of_its_own")
}

func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	var all []*participant
	for range 10 {
		all = append(all, begin(t, dir, nil))
	}
	url := all[0].url()
	for _, p := range all[1:] {
		if got := p.url(); got != url {
			t.Errorf("url is %s, want %s", got, url)
		}
	}
	serverPID(t, dir)
	// All leave at once, too.
	for _, p := range all {
		check(t, p.stdin.Close())
	}
	for _, p := range all {
		p.finish()
	}
	wantDown(t, dir)
}

func TestKilledParticipants(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	starter, url := join(t, dir)
	pid := serverPID(t, dir)
	other, _ := join(t, dir)
	conn := connect(t, url)

	starter.kill()
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("connection after the starter's death: %v", err)
	}
	if got := serverPID(t, dir); got != pid {
		t.Errorf("server is process %d, want still %d", got, pid)
	}
	other.kill()
	if got := serverPID(t, dir); got != pid {
		t.Errorf("server is process %d after everybody's death, want still %d", got, pid)
	}
	last, _ := join(t, dir)
	if got := serverPID(t, dir); got != pid {
		t.Errorf("server is process %d, want %d joined", got, pid)
	}
	last.leave()
	wantDown(t, dir)
}

func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	starter, _ := join(t, dir)
	pid := serverPID(t, dir)
	other, _ := join(t, dir)
	check(t, syscall.Kill(-starter.cmd.Process.Pid, syscall.SIGINT)) // What a Ctrl-C is: to the whole group.
	_ = starter.cmd.Wait()
	if got := serverPID(t, dir); got != pid {
		t.Errorf("server is process %d, want still %d", got, pid)
	}
	other.leave()
	wantDown(t, dir)
}

func TestKilledServer(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	p, url := join(t, dir)
	q, _ := join(t, dir)
	execute(t, url, "CREATE TABLE acknowledged AS SELECT 1 AS n")
	for range 2 { // The first time it is the child of a participant, the second time perhaps of another.
		pid := serverPID(t, dir)
		check(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, "the server is back at its address", func() bool {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				return false
			}
			return conn.Close(t.Context()) == nil
		})
		if n := query[int](t, url, "SELECT n FROM acknowledged"); n != 1 {
			t.Errorf("acknowledged row is %d, want 1", n)
		}
	}
	p.leave()
	q.leave()
	wantDown(t, dir)
}

// A participant dies with the server: nobody is left to restart it, and its pid file is stale.
func TestEverythingKilled(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	p, url := join(t, dir)
	execute(t, url, "CREATE TABLE kept AS SELECT 7 AS n")
	pid := serverPID(t, dir)
	p.kill()
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	next, url := join(t, dir) // At once, while the server's children may still be dying.
	if n := query[int](t, url, "SELECT n FROM kept"); n != 7 {
		t.Errorf("kept row is %d, want 7", n)
	}
	next.leave()
	wantDown(t, dir)
}

// A child that outlives the server holds the data's shared memory.
func TestHeadlessServer(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	p, url := join(t, dir)
	backend := query[int](t, url, "SELECT pg_backend_pid()")
	check(t, syscall.Kill(backend, syscall.SIGSTOP)) // It cannot notice that the server has died.
	pid := serverPID(t, dir)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	anotherRuns(t, dir, pid)
	p.leave()
	wantDown(t, dir)
}

// A plain SIGTERM has the server wait for its clients to go, which pools never do.
func TestServerToldToStop(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	p, url := join(t, dir)
	connect(t, url)
	pid := serverPID(t, dir)
	check(t, syscall.Kill(pid, syscall.SIGTERM))
	anotherRuns(t, dir, pid)
	p.leave()
	wantDown(t, dir)
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]string{"in initdb": "init-*/data/PG_VERSION", "in server start": "data/postmaster.pid"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clusterDir(t)
			if name == "in server start" {
				seed(t, dir)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for range 2000 {
					if found, err := filepath.Glob(homeOf(dir).path(when)); err != nil || len(found) > 0 {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			c, err := startHasty(ctx, dir)
			if err == nil { // The server was quicker than the cancellation.
				check(t, c.Close(t.Context()))
			} else if !strings.Contains(err.Error(), "context canceled") {
				t.Errorf("error is %q, want the cancellation", err)
			}
			wantDown(t, dir)
			check(t, startHere(t, dir).Close(t.Context()))
		})
	}
}

// A Ctrl-C usually cancels the context that Close is given.
func TestCloseWithDoneContext(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	c := startHere(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, c.Close(ctx))
	wantDown(t, dir)
}

func TestMissingPassword(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	check(t, os.Remove(homeOf(dir).path("password")))
	_, err := Start(t.Context(), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "put it back") {
		t.Errorf("error is %v, want what to do", err)
	}
}

// anotherRuns waits for a server in the place of the one that was pid.
func anotherRuns(t *testing.T, dir string, pid int) {
	t.Helper()
	eventually(t, "another server runs", func() bool {
		st, now, err := homeOf(dir).state()
		return err == nil && st == ready && now.pid != pid
	})
}
