//go:build linux || darwin

package database

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a dead server left of a pid file, the next start goes through.
func TestStalePidFile(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	h := homeOf(dir)
	check(t, h.prepare())
	stranger := h.who.command(t.Context(), "/bin/sleep", "60") // Of the server's account: PostgreSQL alone would believe it.
	check(t, stranger.Start())
	t.Cleanup(func() { _ = stranger.Cancel(); _ = stranger.Wait() })
	zombie := h.who.command(t.Context(), "/bin/true")
	check(t, zombie.Start())
	t.Cleanup(func() { _ = zombie.Wait() })
	eventually(t, "the child is a zombie", func() bool { return !alive(zombie.Process.Pid) })

	for name, text := range map[string]string{
		"number of a stranger": lockFile(stranger.Process.Pid, h),
		"number of pawgate":    lockFile(os.Getpid(), h),
		"number of init":       lockFile(1, h),
		"zombie":               lockFile(zombie.Process.Pid, h),
		"nobody":               lockFile(4194301, h),
		"empty":                "",
		"garbage":              "\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"data/postmaster.pid", "run/.s.PGSQL.5432.lock"} {
				plant(t, h, file, text)
			}
			check(t, startHere(t, dir).Close(t.Context()))
			wantDown(t, dir)
		})
	}
}

func lockFile(pid int, h home) string {
	return fmt.Sprintf("%d\n%s\n1764500000\n5432\n%s\n\n  5432001    131072\nready   \n", pid, h.data(), h.path("run"))
}

func plant(t *testing.T, h home, file, text string) {
	t.Helper()
	check(t, os.WriteFile(h.path(file), []byte(text), 0o600))
	if h.who.other {
		check(t, os.Chown(h.path(file), int(h.who.uid), int(h.who.gid)))
	}
}

// A server that a person started at the data is neither killed nor fought over.
func TestServerStartedByHand(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	h := homeOf(dir)
	check(t, h.prepare())
	pg, err := findBinaries(t.Context(), h, site{programs: programFolders(), onPath: true}, nil)
	check(t, err)
	byHand := h.who.command(t.Context(), pg.program("postgres"), "-D", h.data(), "-c", "listen_addresses=", "-c", "unix_socket_directories="+h.path("run"))
	check(t, byHand.Start())
	t.Cleanup(func() { _ = byHand.Cancel(); _ = byHand.Wait() })
	eventually(t, "it is ready", func() bool { p, ok := h.readPidfile(); return ok && p.status == "ready" })

	_, err = Start(t.Context(), Config{Dir: dir})
	if want := strconv.Itoa(byHand.Process.Pid); err == nil || !strings.Contains(err.Error(), "process "+want) {
		t.Errorf("error is %v, want it to name process %s", err, want)
	}
	check(t, byHand.Process.Signal(syscall.SIGINT))
	check(t, byHand.Wait())
	check(t, startHere(t, dir).Close(t.Context()))
}

func TestKilledInInitdb(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	p := begin(t, dir, nil)
	eventually(t, "initdb is at work", func() bool {
		found, err := filepath.Glob(homeOf(dir).path("init-*/data/PG_VERSION"))
		return err == nil && len(found) > 0
	})
	p.kill()
	next, url := join(t, dir)
	if n := query[int](t, url, "SELECT 1"); n != 1 {
		t.Errorf("query gives %d, want 1", n)
	}
	next.leave()
	wantDown(t, dir)
	wantNames(t, dir, nil)
}

// wantNames compares what is in the cluster's folder beyond what belongs there.
func wantNames(t *testing.T, dir string, want []string) {
	t.Helper()
	entries, err := os.ReadDir(homeOf(dir).dir)
	check(t, err)
	var got []string
	for _, e := range entries {
		switch e.Name() {
		case "data", "run", "log", "password", "start.log", "lock.control", "lock.members", "lock.server":
		default:
			name, _, _ := strings.Cut(e.Name(), "-")
			got = append(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folder holds more (-want +got):\n%s", diff)
	}
}

// Data that is not whole was not made here; it is kept, out of the way.
func TestUnusableData(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	half := filepath.Join(dir, "postgres", "data")
	check(t, os.MkdirAll(half, 0o700))
	check(t, os.Chmod(filepath.Dir(half), 0o711))
	check(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	check(t, startHere(t, dir).Close(t.Context()))
	wantNames(t, dir, []string{"unusable"})
}

// A start that was killed before it had made the role and the database is completed by the next.
func TestKilledBeforeDatabase(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	c := startHere(t, dir)
	admin := c.server.at.url(adminRole, c.server.pass.password(adminRole), "postgres")
	execute(t, admin, "DROP DATABASE "+dbName)
	execute(t, admin, "DROP ROLE "+appRole)
	other := startHere(t, dir)
	if got := query[string](t, other.URL(), "SELECT current_user::text"); got != appRole {
		t.Errorf("user is %q, want %q", got, appRole)
	}
}

// longDir is too long for a socket, so the server listens on a port.
func longDir(t *testing.T) string {
	t.Helper()
	outer := tempDir(t)
	return seed(t, filepath.Join(outer, strings.Repeat("very-long-folder/", 6)+"pawgate data"))
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := longDir(t)
	p, url := join(t, dir)
	if !strings.Contains(url, "@127.0.0.1:") {
		t.Fatalf("url is %s, want a port of loopback", url)
	}
	q, again := join(t, dir)
	if again != url {
		t.Errorf("url is %s, want %s", again, url)
	}
	pid := serverPID(t, dir)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, "the server is back at its port", func() bool {
		st, pf, err := homeOf(dir).state()
		return err == nil && st == ready && pf.pid != pid && strings.Contains(url, fmt.Sprintf("127.0.0.1:%d/", pf.at.port))
	})
	if n := query[int](t, url, "SELECT 1"); n != 1 {
		t.Errorf("query gives %d, want 1", n)
	}
	p.leave()
	q.leave()
	wantDown(t, dir)
}

func TestBusyPort(t *testing.T) {
	t.Parallel()
	dir := longDir(t)
	c := startHere(t, dir)
	port := c.server.at.port
	check(t, c.Close(t.Context()))
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	c = startHere(t, dir)
	if c.server.at.port == port {
		t.Errorf("port is the busy %d", port)
	}
	if n := query[int](t, c.URL(), "SELECT 1"); n != 1 {
		t.Errorf("query gives %d, want 1", n)
	}
}

func TestVersionOfData(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	version := filepath.Join(homeOf(dir).data(), "PG_VERSION")
	check(t, os.WriteFile(version, []byte("9\n"), 0o600))
	_, err := Start(t.Context(), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "is of version 9") || !strings.Contains(err.Error(), "install that version") {
		t.Errorf("error is %v, want the version and what to do", err)
	}
}

// fakePrograms makes folders with programs that only say their version.
func fakePrograms(t *testing.T, majors ...int) site {
	t.Helper()
	base := tempDir(t)
	for _, m := range majors {
		bin := filepath.Join(base, strconv.Itoa(m), "bin")
		check(t, os.MkdirAll(bin, 0o755))
		script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.3 (Debian)'\n", m)
		for _, name := range []string{"postgres", "initdb"} {
			writeProgram(t, filepath.Join(bin, name), strings.NewReader(script))
		}
	}
	return site{programs: []string{base + "/*/bin"}, repository: "http://127.0.0.1:1"}
}

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		majors  []int
		data    string // PG_VERSION
		want    int
		wantErr string
	}{
		{name: "the newest", majors: []int{15, 17, 16}, want: 17},
		{name: "the data's own", majors: []int{15, 17, 16}, data: "15\n", want: 15},
		{name: "too old", majors: []int{13, 14}, wantErr: "no version 15 or newer is installed and none could be fetched"},
		{name: "the data's own is too old but there", majors: []int{14, 16}, data: "14\n", want: 14},
		{name: "none", wantErr: "install the package postgresql, or set DATABASE_URL"},
		{name: "the data's own is missing", majors: []int{15, 17}, data: "16\n", wantErr: "of version 16, which is not installed (found: 15, 17)"},
		{name: "the data's is unknown", majors: []int{15}, data: "99\n", wantErr: "version 99 is not offered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := home{dir: tempDir(t), who: serverAccount("")}
			if tt.data != "" {
				check(t, os.MkdirAll(filepath.Join(h.data(), "global"), 0o700))
				check(t, os.WriteFile(filepath.Join(h.data(), "PG_VERSION"), []byte(tt.data), 0o600))
				check(t, os.WriteFile(filepath.Join(h.data(), "global/pg_control"), []byte("x"), 0o600))
			}
			got, err := findBinaries(t.Context(), h, fakePrograms(t, tt.majors...), discard())
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error is %v, want it to say %q", err, tt.wantErr)
				}
				return
			}
			check(t, err)
			if got.major != tt.want {
				t.Errorf("version is %d, want %d", got.major, tt.want)
			}
		})
	}
}

func haveProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs the program %s", name)
	}
}
