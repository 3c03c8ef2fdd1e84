//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startBound is how long serve may take to answer /healthz: a first start
// makes a database cluster, on two busy cores.
const startBound = 90 * time.Second

// repoRoot is the folder that holds go.mod.
func repoRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// unavailable ends the test because a client it needs is not installed. In CI
// that is a failure, unless E2E_CANNOT_INSTALL gives the reason why this kind
// of machine cannot have it.
func unavailable(t testing.TB, what, how string) {
	t.Helper()
	if reason := os.Getenv("E2E_CANNOT_INSTALL"); reason != "" {
		t.Skipf("%s: cannot be installed here: %s", what, reason)
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %s", what, how)
	}
	t.Skipf("%s is missing: %s", what, how)
}

// binary is the path of the built command under test.
func binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PAWGATE_BIN")
	if path == "" {
		path = filepath.Join(repoRoot(t), "bin", "pawgate")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("bin/pawgate is missing: run make build, or set PAWGATE_BIN")
		}
		t.Skip("bin/pawgate is missing: run make build, or set PAWGATE_BIN")
	}
	return path
}

// freeAddr is a loopback address that nothing listens on at this moment.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// output collects what a process writes, for reading while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// pawgate is a running `pawgate serve` with a store of its own.
type pawgate struct {
	Bin    string   // the command
	URL    string   // base address, without a path
	MCP    string   // the MCP endpoint
	Key    string   // a key of agent default
	Env    []string // what another process needs to share the same store
	stdout output
	stderr output
}

// startPawgate runs `pawgate serve`.
func startPawgate(t *testing.T) *pawgate {
	t.Helper()
	return startServe(t, binary(t))
}

// startServe runs `server serve`, where server is the command or a stand-in for
// it, on a free port with a new store and waits until it is healthy. The test's
// end interrupts it and checks that it stops.
func startServe(t *testing.T, server string) *pawgate {
	t.Helper()
	addr := freeAddr(t)
	p := &pawgate{Bin: binary(t), URL: "http://" + addr, MCP: "http://" + addr + "/mcp"}
	p.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"PAWGATE_ADDR=" + addr, "PAWGATE_DATA=" + dataDir(t),
	}
	cmd := exec.Command(server, "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Env, &p.stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start serve: %v", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() { p.stop(t, cmd.Process, exited) })
	p.waitHealthy(t, exited)
	p.Key = p.newKey(t, "default")
	return p
}

// dataDir is a new folder for the private cluster. Others may pass through it,
// as through a user's data folder: PostgreSQL refuses to run as root, and the
// account it runs as instead could not enter t.TempDir.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawgate-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the data folder: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (p *pawgate) waitHealthy(t *testing.T, exited chan error) {
	t.Helper()
	deadline := time.After(startBound)
	for {
		if res, err := http.Get(p.URL + "/healthz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("serve ended before it was healthy: %v\n%s%s", err, p.stdout.String(), p.stderr.String())
		case <-deadline:
			t.Fatalf("serve not healthy after %s\n%s%s", startBound, p.stdout.String(), p.stderr.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop interrupts serve as Ctrl-C does. It must end by itself.
func (p *pawgate) stop(t *testing.T, proc *os.Process, exited chan error) {
	if err := proc.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("interrupt serve: %v", err)
	}
	select {
	case <-exited:
	case <-time.After(20 * time.Second):
		t.Errorf("serve still runs 20 s after an interrupt\n%s", p.stderr.String())
		_ = proc.Kill()
		<-exited
	}
	if t.Failed() {
		t.Logf("serve said on stderr:\n%s", tail(p.stderr.String(), 4000))
	}
}

// newKey makes a key for agent, good for all its tools, with the product's own
// command.
func (p *pawgate) newKey(t *testing.T, agent string) string {
	t.Helper()
	out := p.run(t, "key", "create", agent, "--scope", "*", "--json")
	var made struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Key == "" {
		t.Fatalf("key create printed no key: %v\n%s", err, out)
	}
	return made.Key
}

// run is one operator command against this store; it must succeed.
func (p *pawgate) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runProcess(t, 60*time.Second, "", p.Env, p.Bin, args...)
	if err != nil {
		t.Fatalf("pawgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// runProcess runs a command without input and gives its standard output,
// followed by its standard error when it failed. It and all it started are
// killed past the bound.
func runProcess(t testing.TB, bound time.Duration, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("still running after %s", bound)
	}
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// reverseProxy stands between a client and a server. It reads a request whole
// before it passes it on: one whose answer begins while its body is still read
// can be cut off (golang.org/issue/40747).
func reverseProxy(t *testing.T, rewrite func(*httputil.ProxyRequest)) *httptest.Server {
	t.Helper()
	pass := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: rewrite}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		if len(body) == 0 {
			r.Body = http.NoBody
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// tail is the last n bytes of a text.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
