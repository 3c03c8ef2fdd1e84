//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// privateEnv is the environment of processes that share a private cluster.
func privateEnv(t *testing.T, dir string) []string {
	t.Helper()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PAWGATE_DATA=" + dir}
}

// TestResilienceSharedCluster: serve and shims share one private cluster, and
// any of them may be killed: the others go on, whoever started the server.
func TestResilienceSharedCluster(t *testing.T) {
	dir := dataDir(t)
	env := privateEnv(t, dir)
	first := startInstance(t, "PAWGATE_DATA="+dir)
	shims := []*shim{startShim(t, env), startShim(t, env), startShim(t, env)}
	asked := 0
	all := func(what string) {
		t.Helper()
		for n, s := range shims {
			asked++
			s.send(callLine(asked, "memory_store", fmt.Sprintf(`{"content":"%s, shim %d"}`, what, n)))
			wantAnswer(t, s.answer(t), asked)
		}
	}
	all("with serve")
	first.kill(t) // which started the server
	all("after serve was killed")
	_ = shims[0].ended(t, syscall.SIGKILL)
	shims = shims[1:]
	all("after a shim was killed")
	second := startInstance(t, "PAWGATE_DATA="+dir)
	c := newClient(second.MCP, second.newKey(t, "default"))
	recovery(t, c)
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Logf("everybody is served again %s after the server was killed", recoverAll(t, c, shims).Round(time.Millisecond))
	for _, s := range shims {
		s.end(t)
	}
	recovery(t, c)
	stopInstance(t, second)
	wantClusterDown(t, dir)
}

// recoverAll waits until a client and every shim are served.
func recoverAll(t *testing.T, c *client, shims []*shim) time.Duration {
	t.Helper()
	began := time.Now()
	recovery(t, c)
	for _, s := range shims {
		eventually(t, 15*time.Second, "a shim is served", func() bool {
			s.send(callLine(1, "list_agents", `{}`))
			var r reply
			return r.read([]byte(s.answer(t))) == nil && !r.isError
		})
	}
	return time.Since(began)
}

// stopInstance interrupts serve and waits for its end.
func stopInstance(t *testing.T, i *instance) {
	t.Helper()
	i.killed = true
	i.stop(t, i.process, i.exited)
}

// TestResilienceAllKilled: everybody is killed at once, PostgreSQL too, and a
// stranger gets the number in the pid file. The next start needs no hand.
func TestResilienceAllKilled(t *testing.T) {
	dir := dataDir(t)
	env := privateEnv(t, dir)
	i := startInstance(t, "PAWGATE_DATA="+dir)
	s := startShim(t, env)
	s.send(callLine(1, "memory_store", `{"content":"kept through it all"}`))
	wantAnswer(t, s.answer(t), 1)
	server := postmaster(t, dir)
	family := append(children(server), server)
	i.kill(t)
	_ = s.ended(t, syscall.SIGKILL)
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	stranger := exec.Command("/bin/sleep", "60")
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(t, t.TempDir())} // of the account that PostgreSQL itself would believe
	stranger.Dir = "/"
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	pidfile := filepath.Join(dir, "postgres", "data", "postmaster.pid")
	text, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	stale := strings.Replace(string(text), fmt.Sprint(server), fmt.Sprint(stranger.Process.Pid), 1)
	if err := os.WriteFile(pidfile, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	again := startShim(t, env)
	again.send(callLine(1, "memory_search", `{"query":"kept"}`))
	answer := again.answer(t)
	wantAnswer(t, answer, 1)
	if !strings.Contains(answer, "kept through it all") {
		t.Errorf("the memory is gone: %.300s", answer)
	}
	t.Logf("the next start answered after %s", time.Since(began).Round(time.Millisecond))
	again.end(t)
	wantClusterDown(t, dir)
	if !alive(stranger.Process.Pid) {
		t.Error("the stranger with the server's number was killed")
	}
}

// TestResilienceBusyPort: a port that somebody has is said at once, with the
// setting that helps, and before a database is started.
func TestResilienceBusyPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := dataDir(t)
	began := time.Now()
	out, err := runProcess(t, 20*time.Second, "", append(privateEnv(t, dir), "PAWGATE_ADDR="+l.Addr().String()), binary(t), "serve")
	if err == nil || !strings.Contains(out, "PAWGATE_ADDR") || !strings.Contains(out, l.Addr().String()) || strings.Count(out, "\n") > 2 {
		t.Errorf("serve on a busy port: %v\n%s", err, out)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
		t.Error("a cluster was made for nothing")
	}
	wantClusterDown(t, dir)
}
