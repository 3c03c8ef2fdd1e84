//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresServer is a PostgreSQL of the test's own, on the loopback interface,
// to be killed at will. It runs without fsync: what is killed here are its
// processes, never the machine.
type postgresServer struct {
	URL     string
	dir     string
	program string
	args    []string
	owner   *syscall.Credential // PostgreSQL refuses to run as root
	cmd     *exec.Cmd
	exited  chan struct{}
}

// testName is how sessions of the tests themselves call themselves.
const testName = "e2e"

// startPostgres makes a cluster and starts it; settings are "name=value".
func startPostgres(t *testing.T, settings ...string) *postgresServer {
	t.Helper()
	bin := postgresPrograms(t)
	port := strings.TrimPrefix(freeAddr(t), "127.0.0.1:")
	s := &postgresServer{dir: dataDir(t), program: filepath.Join(bin, "postgres"),
		URL: "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable&application_name=" + testName}
	s.owner = unprivileged(t, s.dir)
	data := filepath.Join(s.dir, "data")
	initdb := s.command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.args = []string{"-D", data}
	for _, setting := range slices.Concat([]string{"port=" + port, "listen_addresses=127.0.0.1", "unix_socket_directories=",
		"fsync=off", "jit=off", "max_connections=100", "log_min_messages=fatal"}, settings) {
		s.args = append(s.args, "-c", setting)
	}
	s.start(t)
	t.Cleanup(func() { s.kill(t) })
	return s
}

// postgresPrograms is the folder of PostgreSQL's programs.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		unavailable(t, "PostgreSQL", "run .ci/lib/postgres.sh")
	}
	return filepath.Dir(found[len(found)-1])
}

// unprivileged gives a folder to the account that servers run as under root.
func unprivileged(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("find the account to run PostgreSQL as: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *postgresServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Setpgid: true}
	return cmd
}

// start starts the server and waits until it answers.
func (s *postgresServer) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if s.cmd == nil {
			s.cmd = s.command(s.program, s.args...)
			s.cmd.Stdout, s.cmd.Stderr = log, log
			if err := s.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.exited = make(chan struct{})
			go func(cmd *exec.Cmd, exited chan struct{}) { _ = cmd.Wait(); close(exited) }(s.cmd, s.exited)
		}
		if conn, err := pgx.Connect(context.Background(), s.URL); err == nil {
			conn.Close(context.Background())
			return
		}
		select {
		case <-s.exited:
			s.cmd = nil // the memory of the one before was not free yet
		default:
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Fatalf("PostgreSQL does not start: %s", tail(string(text), 2000))
		}
	}
}

// kill is kill -9 of every process of the server at once.
func (s *postgresServer) kill(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	family := append([]int{s.cmd.Process.Pid}, children(s.cmd.Process.Pid)...)
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.wait(t, family)
}

// stop asks the server to end: SIGQUIT is PostgreSQL's immediate shutdown,
// SIGINT its fast one.
func (s *postgresServer) stop(t testing.TB, sig syscall.Signal) {
	t.Helper()
	family := append([]int{s.cmd.Process.Pid}, children(s.cmd.Process.Pid)...)
	_ = s.cmd.Process.Signal(sig)
	s.wait(t, family)
}

func (s *postgresServer) wait(t testing.TB, family []int) {
	t.Helper()
	<-s.exited
	s.cmd = nil
	eventually(t, 10*time.Second, "the server's processes are gone", func() bool {
		return !slices.ContainsFunc(family, alive)
	})
}

// signalAll sends a signal to every process of the server.
func (s *postgresServer) signalAll(sig syscall.Signal) {
	for _, pid := range append([]int{s.cmd.Process.Pid}, children(s.cmd.Process.Pid)...) {
		_ = syscall.Kill(pid, sig)
	}
}

// children are the processes that a process started and that live.
func children(parent int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// pid (name) state ppid …; a name may hold spaces and brackets.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && fields[0] != "Z" {
			found = append(found, pid)
		}
	}
	return found
}

// alive: a process that is there and no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " Z")
}

// eventually waits for what other processes do in their own time.
func eventually(t testing.TB, bound time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain until %s", bound, what)
		}
	}
}

// query is one value of the database.
func query[T any](t testing.TB, url, sql string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(ctx)
	var v T
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// terminateIdle ends every session of a database but the one that asks, as a
// failover or an impatient server does, and waits until they are gone.
func terminateIdle(t testing.TB, url string) int {
	t.Helper()
	const others = ` from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and datname = current_database()`
	n := query[int](t, url, `select count(pg_terminate_backend(pid))`+others)
	eventually(t, 10*time.Second, "sessions are gone", func() bool { return query[int](t, url, `select count(*)`+others) == 0 })
	return n
}

// instance is a `pawgate serve` that a test may kill.
type instance struct {
	*pawgate
	process *os.Process
	exited  chan error
	killed  bool
}

// startInstance runs serve with these settings and waits until it is healthy.
// Unless the test killed it, it must end when it is interrupted.
func startInstance(t *testing.T, env ...string) *instance {
	t.Helper()
	addr := freeAddr(t)
	p := &pawgate{Bin: binary(t), URL: "http://" + addr, MCP: "http://" + addr + "/mcp"}
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PAWGATE_ADDR=" + addr}, env...)
	i := &instance{pawgate: p}
	i.start(t)
	t.Cleanup(func() {
		if !i.killed {
			p.stop(t, i.process, i.exited)
		}
	})
	return i
}

// start runs serve, again after it was killed, and waits until it is healthy.
func (i *instance) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(i.Bin, "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr = i.Env, &i.stdout, &i.stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start serve: %v", err)
	}
	exited := make(chan error, 1)
	i.process, i.exited, i.killed = cmd.Process, exited, false
	go func() { exited <- cmd.Wait() }()
	i.waitHealthy(t, exited)
}

// kill is kill -9.
func (i *instance) kill(t testing.TB) {
	t.Helper()
	i.killed = true
	if err := i.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-i.exited
}

// client calls tools of one instance.
type client struct {
	url, key string
	http     *http.Client
}

func newClient(url, key string) *client {
	return &client{url: url, key: key, http: &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
}

// reply is an answer as a client sees it.
type reply struct {
	status     int
	requestID  string
	code       int            // of a JSON-RPC error
	content    map[string]any // the tool's result, or the error's data
	isError    bool
	retryAfter string // the header
	body       string
}

// call is one tools/call. An error is a call without an answer.
func (c *client) call(tool string, arguments any) (reply, error) {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return reply{}, err
	}
	return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, encoded))
}

func (c *client) post(message string) (reply, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(message))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: resp.StatusCode, requestID: resp.Header.Get("X-Request-Id"), retryAfter: resp.Header.Get("Retry-After"), body: string(body)}
	return r, r.read(body)
}

// read takes an answer apart; one that is not JSON-RPC is an error.
func (r *reply) read(body []byte) error {
	var m struct {
		Result *struct {
			IsError           bool           `json:"isError"`
			StructuredContent map[string]any `json:"structuredContent"`
		} `json:"result"`
		Error *struct {
			Code int            `json:"code"`
			Data map[string]any `json:"data"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(body, &m); {
	case err != nil:
		return fmt.Errorf("answer %.200q: %w", body, err)
	case m.Error != nil:
		r.code, r.content, r.isError = m.Error.Code, m.Error.Data, true
	case m.Result != nil:
		r.content, r.isError = m.Result.StructuredContent, m.Result.IsError
	default:
		return errors.New("neither result nor error: " + string(body))
	}
	return nil
}

// ok: the call did what was asked.
func (r reply) ok() bool { return r.status == http.StatusOK && !r.isError }

// reason is why it did not.
func (r reply) reason() string { s, _ := r.content["reason"].(string); return s }

// retryable: a refusal that says why and when to try again, in the form that
// its door demands: HTTP 503 with a JSON-RPC error, or a tool's error.
func (r reply) retryable() bool {
	ms, _ := r.content["retry_after_ms"].(float64)
	switch {
	case !r.isError || ms <= 0 || r.reason() == "":
		return false
	case r.status == http.StatusServiceUnavailable:
		return r.code == -32603 && r.retryAfter != ""
	}
	return r.status == http.StatusOK && r.code == 0
}
