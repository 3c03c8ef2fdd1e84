//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

// startPooler puts pgbouncer in front of a server, in transaction mode with a
// few server connections, as RDS Proxy would be. It gives the URL.
func startPooler(t *testing.T, db *postgresServer, size int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			unavailable(t, "pgbouncer", "run .ci/lib/pgbouncer.sh")
		}
	}
	dir := dataDir(t)
	owner := unprivileged(t, dir)
	addr := freeAddr(t)
	host, port, _ := strings.Cut(addr, ":")
	upstream, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
server_login_retry = 0.2
query_wait_timeout = 10
`, upstream.Port, host, port, filepath.Join(dir, "users"), size)
	for name, text := range map[string]string{"pgbouncer.ini": config, "users": `"postgres" ""` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	said := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer said:\n%s", tail(said.String(), 2000))
		}
	})
	url := "postgres://postgres@" + addr + "/postgres?sslmode=disable"
	eventually(t, 10*time.Second, "pgbouncer answers", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			conn.Close(context.Background())
		}
		return err == nil
	})
	return url
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestResiliencePooler: two instances share a transaction pooler with fewer
// connections than they have calls under way, and it takes every statement.
func TestResiliencePooler(t *testing.T) {
	const size = 5
	db := startPostgres(t, "log_statement=all", "log_min_messages=warning", "log_line_prefix=%a|")
	url := startPooler(t, db, size)
	first := startInstance(t, "DATABASE_URL="+url, "DATABASE_POOLED=true")
	second := startInstance(t, "DATABASE_URL="+url, "DATABASE_POOLED=true")
	unlimited(t, db.URL)
	key := first.newKey(t, "default")
	clients := []*client{newClient(first.MCP, key), newClient(second.MCP, key)}

	t.Run("LAM-01 two instances, many clients", func(t *testing.T) {
		l := newLoad("pooled", clients...)
		l.during(64, func() { time.Sleep(3 * time.Second) })
		l.verify(t, db.URL)
		if failed := l.calls["ok"] < len(l.answered) || len(l.calls) > 1; failed {
			t.Errorf("with the database there every call succeeds: %v", l.calls)
		}
	})
	t.Run("the database is killed behind the pooler", func(t *testing.T) {
		l := newLoad("killed behind", clients...)
		l.during(8, func() {
			time.Sleep(500 * time.Millisecond)
			db.kill(t)
			time.Sleep(300 * time.Millisecond)
			db.start(t)
			t.Logf("the first call succeeded %s after the database was back", recovery(t, clients[0]).Round(time.Millisecond))
			time.Sleep(500 * time.Millisecond)
		})
		l.verify(t, db.URL)
	})
	t.Run("LAM-01 every tool of the store", func(t *testing.T) {
		callEveryTool(t, clients)
		first.run(t, "resume", "default")
	})
	t.Run("LAM-01 commands and shims", func(t *testing.T) {
		first.run(t, "agent", "list", "--json")
		first.run(t, "audit", "list", "--json")
		first.run(t, "migrate")
		s := startShim(t, append(first.Env, "DATABASE_URL="+url, "DATABASE_POOLED=true"))
		s.send(callLine(1, "memory_search", `{"query":"備份"}`))
		wantAnswer(t, s.answer(t), 1)
		s.end(t)
	})
	t.Run("LAM-02 nothing pins a connection", func(t *testing.T) { wantNothingPinned(t, db, url, size) })
	t.Run("LAM-01 the pooler is one that minds", func(t *testing.T) { wantPoolerMinds(t, url) })
}

// storeCategories need nothing but the database.
var storeCategories = []string{"memory", "agent", "control"}

// callEveryTool calls each tool that needs nothing but the database, on both
// instances in turn, with the least and with all the arguments it takes. A
// statement that the pooler or the mode without prepared statements does not
// bear shows as an internal error.
func callEveryTool(t *testing.T, clients []*client) {
	t.Helper()
	stored, err := clients[0].call("memory_store", map[string]any{"content": "Pooled 季報, with tags", "tags": []string{"q", "備"}, "layer": "semantic", "importance": 7.5})
	if err != nil || !stored.ok() {
		t.Fatalf("memory_store: %v %s", err, stored.body)
	}
	id, _ := stored.content["memory_id"].(string)
	calls, succeeded := 0, 0
	for _, category := range storeCategories {
		for name, schema := range catalogued(t, category) {
			if name == "emergency_stop" {
				continue // the last of them
			}
			for n, args := range []map[string]any{schema.sample(id, false), schema.sample(id, true)} {
				r, err := clients[n].call(name, args)
				calls++
				switch reason := r.reason(); {
				case err != nil || reason == "internal" || reason == "unavailable" || reason == "outcome_unknown" || r.status != 200:
					t.Errorf("%s %v: %v %s", name, args, err, r.body)
				case r.ok():
					succeeded++
				}
			}
		}
	}
	t.Logf("%d calls, %d of them did what was asked", calls, succeeded)
	if succeeded < calls/2 {
		t.Error("most calls were refused: little was tested")
	}
	for n, action := range []string{"status", "stop"} {
		if r, err := clients[n].call("emergency_stop", map[string]any{"action": action, "agent_id": "default", "reason": "a drill"}); err != nil || !r.ok() {
			t.Errorf("emergency_stop %s: %v %s", action, err, r.body)
		}
	}
	if r, err := clients[0].call("list_agents", map[string]any{}); err != nil || r.reason() != "stopped" {
		t.Errorf("the other instance does not know of the stop: %v %s", err, r.body)
	}
}

// schema is as much of a tool's schema as it takes to make arguments.
type schema struct {
	Properties map[string]struct {
		Type    kind
		Enum    []any
		Minimum float64
	}
	Required []string
}

// kind is the type of an argument, or the first of those that it may have.
type kind string

func (k *kind) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*k = kind(one)
		return nil
	}
	var several []string
	if err := json.Unmarshal(b, &several); err != nil || len(several) == 0 {
		return fmt.Errorf("read type %s: %w", b, err)
	}
	*k = kind(several[0])
	return nil
}

// catalogued are the tools of a category, by name.
func catalogued(t *testing.T, category string) map[string]schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "internal", "catalog", category+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tools []struct {
			Public struct{ Name string }
			Args   schema
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	tools := map[string]schema{}
	for _, tool := range file.Tools {
		tools[tool.Public.Name] = tool.Args
	}
	if len(tools) == 0 || tools[file.Tools[0].Public.Name].Properties == nil && len(file.Tools) > 3 {
		t.Fatalf("the catalogue of %s was not understood", category)
	}
	return tools
}

// sample makes arguments: those required, or all.
func (s schema) sample(memoryID string, all bool) map[string]any {
	args := map[string]any{}
	for name, p := range s.Properties {
		if !all && !slices.Contains(s.Required, name) || name == "cursor" {
			continue
		}
		switch {
		case len(p.Enum) > 0:
			args[name] = p.Enum[len(p.Enum)-1]
		case name == "ids":
			args[name] = []string{memoryID, "m_none"}
		case name == "memory_id":
			args[name] = memoryID
		case name == "agent_id":
			args[name] = "default"
		case name == "at" || name == "since" || name == "until" || name == "from" || name == "to":
			args[name] = "2026-01-02T03:04:05Z"
		case p.Type == "array":
			args[name] = []string{"memory_search"}
		case p.Type == "integer" || p.Type == "number":
			args[name] = max(p.Minimum, 1)
		case p.Type == "boolean":
			args[name] = true
		case p.Type == "object":
			args[name] = map[string]any{}
		default:
			args[name] = "備份 sample of " + name
		}
	}
	return args
}

// wantNothingPinned reads what the server was asked through the pooler:
// nothing that lasts longer than its transaction. RDS Proxy pins a connection
// on each of these.
func wantNothingPinned(t *testing.T, db *postgresServer, url string, size int) {
	t.Helper()
	log, err := os.Open(filepath.Join(db.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := 0
	scan := bufio.NewScanner(log)
	scan.Buffer(nil, 4<<20)
	for scan.Scan() {
		if line := scan.Text(); !strings.HasPrefix(line, testName+"|") {
			lines++
			if pins(line) {
				t.Errorf("pins: %.200s", line)
			}
		}
	}
	if lines < 1000 {
		t.Errorf("the server logged %d lines: nothing was tested", lines)
	}
	sessions, prepared := serverSessions(t, url, size)
	if prepared != 0 || sessions < 2 {
		t.Errorf("%d server connections of the pooler hold %d prepared statements", sessions, prepared)
	}
	t.Logf("%d lines of the server's log, %d server connections, %d prepared statements", lines, sessions, prepared)
}

// pins reports whether a line of the log is a statement that outlives its
// transaction: one with a name, or one that changes or occupies the session.
func pins(line string) bool {
	_, logged, ok := strings.Cut(line, "LOG:  ")
	if !ok {
		return false
	}
	how, sql, _ := strings.Cut(logged, ": ")
	if (strings.HasPrefix(how, "execute ") || strings.HasPrefix(how, "parse ")) && !strings.Contains(how, "<unnamed>") {
		return true
	}
	sql = strings.ToLower(strings.TrimSpace(sql))
	for _, word := range []string{"pg_advisory_lock", "pg_try_advisory_lock", "set_config"} {
		if strings.Contains(sql, word+"(") {
			return true
		}
	}
	first, rest, _ := strings.Cut(sql, " ")
	switch first {
	case "set":
		return !strings.HasPrefix(rest, "local ")
	case "prepare", "listen", "discard", "declare", "load", "reset":
		return true
	case "create":
		return strings.HasPrefix(rest, "temp")
	}
	return false
}

// serverSessions looks at the pooler's server connections, as many as can be
// had at once, and counts what is prepared on them.
func serverSessions(t *testing.T, url string, size int) (sessions, prepared int) {
	t.Helper()
	seen := map[int]bool{}
	for range size {
		cfg, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		tx, err := conn.Begin(t.Context()) // keeps the server connection
		if err != nil {
			t.Fatal(err)
		}
		var pid, n int
		if err := tx.QueryRow(t.Context(), "select pg_backend_pid(), (select count(*) from pg_prepared_statements)").Scan(&pid, &n); err != nil {
			t.Fatal(err)
		}
		seen[pid] = true
		prepared += n
	}
	return len(seen), prepared
}

// wantPoolerMinds: two instances that keep statements, as pgx does unless told
// otherwise, do break here. Without that the tests above would prove nothing.
func wantPoolerMinds(t *testing.T, url string) {
	t.Helper()
	var failed error
	for range 20 {
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(t.Context(), "select count(*) from agents where id = $1", "default"); err != nil {
			failed = err
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "42P05") {
		t.Errorf("prepared statements through the pooler: %v, want 42P05", failed)
	}
}
