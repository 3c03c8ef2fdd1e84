//go:build linux || darwin

package database

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The test binary runs itself again as a process that takes part in a cluster, or that only tries to connect.
const (
	joinDir    = "PAWGATE_TEST_JOIN"
	connectURL = "PAWGATE_TEST_CONNECT"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(joinDir) != "":
		os.Exit(participate(os.Getenv(joinDir)))
	case os.Getenv(connectURL) != "":
		os.Exit(tryToConnect(os.Getenv(connectURL)))
	}
	base, err := os.MkdirTemp("", "pawgate-database-test-")
	if err == nil {
		err = os.Chmod(base, 0o711)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// These tests wait for other processes most of the time; more of them than processors run well side by side.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	template = sync.OnceValue(func() error { return makeTemplate(base) })
	templateDir = filepath.Join(base, "postgres")
	code := m.Run()
	_ = os.RemoveAll(base)
	os.Exit(code)
}

// template makes one cluster that most tests copy, since making one takes longer than all else they do.
var (
	template    func() error
	templateDir string
)

// startHasty is Start but for fsync, which on a busy disk takes longer than all the rest.
func startHasty(ctx context.Context, dir string) (*Cluster, error) {
	cfg := Config{Dir: dir}
	at := machine(cfg)
	at.hasty = true
	return start(ctx, cfg, at)
}

func makeTemplate(dir string) error {
	c, err := startHasty(context.Background(), dir)
	if err != nil {
		return err
	}
	return c.Close(context.Background())
}

// seed puts a stopped cluster into dir.
func seed(t *testing.T, dir string) string {
	t.Helper()
	check(t, template())
	check(t, os.MkdirAll(dir, 0o711))
	out, err := exec.Command("cp", "-a", templateDir, filepath.Join(dir, "postgres")).CombinedOutput()
	if err != nil {
		t.Fatalf("copy cluster: %v: %s", err, out)
	}
	t.Cleanup(func() { endServer(dir) })
	return dir
}

// seededDir is a folder that holds a stopped cluster.
func seededDir(t *testing.T) string {
	t.Helper()
	return seed(t, tempDir(t))
}

// participate joins, says so, and leaves when its standard input ends.
func participate(dir string) int {
	ctx := context.Background()
	c, err := startHasty(ctx, dir)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("url", c.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := c.Close(ctx); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

func tryToConnect(url string) int {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return map[bool]int{true: 0, false: 2}[conn.Close(context.Background()) == nil]
}

// participant is such a process.
type participant struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	said  *bufio.Reader
}

// begin starts one as the given account (nil: this one) without waiting for it.
func begin(t *testing.T, dir string, as *syscall.Credential) *participant {
	t.Helper()
	cmd := exec.Command(program(t, as))
	cmd.Env = []string{joinDir + "=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	cmd.Dir = "/"
	// A group of its own, so that a test can send it what a terminal sends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	p := &participant{t: t, cmd: cmd, stdin: in, said: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// program is this test, copied to where another account can run it.
func program(t *testing.T, as *syscall.Credential) string {
	self, err := os.Executable()
	check(t, err)
	if as == nil {
		return self
	}
	path := filepath.Join(tempDir(t), "database.test")
	mine, err := os.Open(self)
	check(t, err)
	defer mine.Close()
	writeProgram(t, path, mine)
	return path
}

// writeProgram has another process write a program. A file that is open for writing here is inherited by a
// child that another test begins meanwhile, and then running it fails as "text file busy" (golang.org/issue/22315).
func writeProgram(t *testing.T, path string, content io.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// url waits until the participant has joined.
func (p *participant) url() string {
	p.t.Helper()
	line, err := p.said.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "url ")
	if !ok {
		p.t.Fatalf("participant said %q (%v), want its url", line, err)
	}
	return url
}

func join(t *testing.T, dir string) (*participant, string) {
	t.Helper()
	p := begin(t, dir, nil)
	return p, p.url()
}

// leave has it close the cluster and end.
func (p *participant) leave() {
	p.t.Helper()
	check(p.t, p.stdin.Close())
	p.finish()
}

// finish waits for its end.
func (p *participant) finish() {
	p.t.Helper()
	rest, _ := io.ReadAll(p.said)
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("participant ended with %v: %s", err, rest)
	}
}

// kill is kill -9.
func (p *participant) kill() {
	p.t.Helper()
	check(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // It says that it was killed.
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tempDir is one that the server's account can enter.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o711))
	return dir
}

// clusterDir is an empty folder for a cluster; whatever server a failed test left at it is ended.
func clusterDir(t *testing.T) string {
	t.Helper()
	dir := tempDir(t)
	t.Cleanup(func() { endServer(dir) })
	return dir
}

func endServer(dir string) {
	h := homeOf(dir)
	for range 500 {
		st, p, err := h.state()
		if err != nil || st == down {
			return
		}
		if st == headless {
			_ = h.killHeadless()
		} else if p.pid > 1 {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		time.Sleep(poll)
	}
}

func homeOf(dir string) home {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		real = filepath.Join(dir, "postgres")
	}
	return home{dir: real, who: serverAccount(filepath.Join(real, "data"))}
}

// serverPID is the server's first process.
func serverPID(t *testing.T, dir string) int {
	t.Helper()
	st, p, err := homeOf(dir).state()
	check(t, err)
	if st != ready {
		t.Fatalf("server is in state %d, want it ready", st)
	}
	return p.pid
}

// wantDown checks that the server and all its processes are gone.
func wantDown(t *testing.T, dir string) {
	t.Helper()
	h := homeOf(dir)
	if st, p, err := h.state(); err != nil || st != down {
		t.Fatalf("server is in state %d (process %d, %v), want it down", st, p.pid, err)
	}
	all, err := processes()
	check(t, err)
	for _, p := range all {
		if strings.Contains(p.command, h.name()) || h.isServer(p) {
			t.Errorf("process left: %d %s", p.pid, p.command)
		}
	}
}

// connect opens a connection that ends with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	var v T
	check(t, connect(t, url).QueryRow(t.Context(), sql).Scan(&v))
	return v
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	_, err := connect(t, url).Exec(t.Context(), sql)
	check(t, err)
}

// eventually waits for what another process or the watch does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(poll)
	}
	t.Fatalf("waited a minute in vain until %s", what)
}
