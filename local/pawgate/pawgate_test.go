package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/operator"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/usage"
)

// terminal runs command lines and keeps what they print.
type terminal struct {
	t              *testing.T
	stdin          string
	stdout, stderr string
}

func (x *terminal) run(line ...string) int {
	x.t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(x.stdin), stdout: &out, stderr: &errs, log: slog.New(slog.DiscardHandler)}
	status := a.run(x.t.Context(), line)
	x.stdout, x.stderr = out.String(), errs.String()
	return status
}

// ok runs a command line that must succeed.
func (x *terminal) ok(line ...string) string {
	x.t.Helper()
	if status := x.run(line...); status != exitOK {
		x.t.Fatalf("pawgate %s: exit %d: %s", strings.Join(line, " "), status, x.stderr)
	}
	return x.stdout
}

// open is a terminal on a database of its own. Not parallel: the environment
// names the database.
func open(t *testing.T) *terminal {
	t.Helper()
	t.Setenv("DATABASE_URL", postgrestest.CloneURL(t))
	t.Setenv("PAWGATE_ENV", "test")
	return &terminal{t: t}
}

// Every command of package operator has a row, and every row a command.
func TestRows(t *testing.T) {
	t.Parallel()
	var rows, commands []string
	for _, c := range operatorCommands() {
		rows = append(rows, c.name)
		if len(c.examples) == 0 || !strings.Contains(strings.Join(c.examples, "\n"), c.name) {
			t.Errorf("%s: no example uses it", c.name)
		}
	}
	for _, d := range operator.Commands() {
		commands = append(commands, d.Name)
	}
	slices.Sort(rows)
	slices.Sort(commands)
	if diff := cmp.Diff(commands, rows); diff != "" {
		t.Errorf("commands (-operator +command line):\n%s", diff)
	}
}

// The examples of the help texts are command lines that parse.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, c := range operatorCommands() {
		for _, e := range c.examples {
			e, _, _ = strings.Cut(e, " <")
			e, _, _ = strings.Cut(e, " >")
			found, rest, err := find(split(e))
			if err != nil || found.name != c.name {
				t.Errorf("%q is not %s: %v", e, c.name, err)
				continue
			}
			for _, d := range operator.Commands() {
				if d.Name != c.name {
					continue
				}
				r := rowOf(c.name)
				p, err := parse(r.schema(d.Args), r.operands, rest)
				if err != nil {
					t.Errorf("%q: %v", e, err)
				}
				for _, local := range r.local {
					delete(p.args, local.Name)
				}
				if encoded, _ := json.Marshal(p.args); !slices.Contains([]string{"agent import", "memory import", "cost import", "skill import", "skill export"}, c.name) {
					if _, err := d.Args.Normalize(encoded); err != nil {
						t.Errorf("%q: %s: %v", e, encoded, err)
					}
				}
			}
		}
	}
}

func rowOf(name string) row {
	rows := operatorRows()
	return rows[slices.IndexFunc(rows, func(r row) bool { return r.name == name })]
}

// split cuts a line at spaces outside quotes.
func split(line string) []string {
	var words []string
	for _, w := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1) {
		if w[0] == '\'' {
			words = append(words, strings.Trim(w, `'`))
			continue
		}
		words = append(words, strings.ReplaceAll(w, `"`, ""))
	}
	return words
}

func TestUsage(t *testing.T) {
	x := open(t)
	for _, c := range []struct {
		line   string
		status int
		stdout string
		stderr string
	}{
		{"", exitOK, "Commands:", ""},
		{"help", exitOK, "pawgate help settings", ""},
		{"--help", exitOK, "Commands:", ""},
		{"help settings", exitOK, "PAWGATE_ADMIN_FUNCTION", ""},
		{"--version", exitOK, "pawgate ", ""},
		{"agent --help", exitOK, "agent explain", ""},
		{"help key create", exitOK, "--scope", ""},
		{"help approve", exitOK, "With --for-minutes: whatever", ""},
		{"key create --help", exitOK, "Usage:\n  pawgate key create AGENT", ""},
		{"key create bot -h", exitOK, "Usage:", ""},
		{"help agent", exitOK, "agent explain", ""},
		{"help nothing", exitUsage, "", `unknown command "nothing"`},
		{"help agent create clerk", exitUsage, "", "name of one command"},
		{"version", exitOK, "pawgate ", ""},
		{"version x", exitUsage, "", "takes nothing"},
		{"agent", exitUsage, "", "agent takes one of: create,"},
		{"agent fly", exitUsage, "", "agent takes one of: create,"},
		{"agent lsit", exitUsage, "", "did you mean list?"},
		{"agnet list", exitUsage, "", "did you mean agent?"},
		{"fly", exitUsage, "", `unknown command "fly"; pawgate help lists them`},
		{"--stack", exitUsage, "", "--stack needs the name of a deployment"},
		{"--fast agent list", exitUsage, "", "--fast stands before no command"},
		{"agent list --jsno", exitUsage, "", "unknown flag --jsno; did you mean --json?; --help tells more"},
		{"agent list --stack", exitUsage, "", "--stack needs a value"},
		{"agent list --json=perhaps", exitUsage, "", `--json cannot be "perhaps"`},
		{"run --max-rounds two hi", exitUsage, "", `--max-rounds cannot be "two": --help tells more`},
		{"run --speed 3 hi", exitUsage, "", "unknown flag --speed"},
		{"budget set", exitUsage, "", "--limit is missing; --help tells more"},
		{"agent create", exitUsage, "", "AGENT is missing"},
		{"agent create a b", exitUsage, "", `do not know what to do with "b"`},
		{"agent create a --colour red", exitUsage, "", "colour"},
		{"agent create Bad!", exitUsage, "", "AGENT must start"},
		{"agent list --limit many", exitUsage, "", `--limit cannot be "many": it is a whole number`},
		{"agent list --limit 9999", exitUsage, "", "between 1 and 1000"},
		{"agent limits nobody --clear --per-minute 3", exitUsage, "", "--per-minute"},
		{"agent explain bot list_agents {limit:5}", exitUsage, "", "ARGUMENTS must be one JSON object in quotes"},
		{"agent allow bot", exitUsage, "", "PATTERN is missing"},
		{"agent show nobody", exitFailed, "", "no agent nobody"},
		{"key revoke k_none", exitFailed, "", "no key k_none"},
		{"agent import /nowhere/agent.toml", exitFailed, "", "no such file"},
		{"approve", exitUsage, "", "ID is missing"},
		{"approve list", exitOK, "nothing waits for you", ""},
		{"approval list --state denied", exitOK, "no such request", ""},
		{"approval approve abcd", exitFailed, "", "no approval abcd"},
		{"approval deny abcd", exitFailed, "", "no approval abcd"},
		{"grant list", exitOK, "no grant or approval is alive", ""},
		{"oauth list", exitOK, "no subject is mapped", ""},
		{"oauth map x y z", exitUsage, "", "issuer must be the URL"},
		{"audit verify", exitOK, "every row is as it was written", ""},
		{"audit prune --before 10d", exitOK, "no month lies wholly before", ""},
		{"maintain", exitOK, "partitions", ""},
		{"agent rules nobody", exitFailed, "", "no agent nobody"},
		{"agent rules nobody /nowhere/rules.toml", exitFailed, "", "no such file"},
		{"licence", exitUsage, "", "licence takes one of: key,"},
		{"licence make --customer x --edition pro --expires 1d", exitFailed, "", "PAWGATE_LICENCE_SIGNING_KEY is not set"},
		{"licence check", exitOK, "state     none", ""},
		{"licence check nonsense", exitFailed, "", "PAWGATE_LICENCE_KEY"},
		{"licence key x", exitUsage, "", "licence key takes no"},
		{"audit", exitOK, "agent.show", ""},
		{"audit --decision refused", exitOK, "no rows", ""},
		{"migrate", exitOK, "up to date", ""},
	} {
		status := x.run(strings.Fields(c.line)...)
		if status != c.status || !strings.Contains(x.stdout, c.stdout) || !strings.Contains(x.stderr, c.stderr) {
			t.Errorf("pawgate %s: exit %d, stdout %q, stderr %q", c.line, status, x.stdout, x.stderr)
		}
		if c.stderr != "" && x.stdout != "" || c.stderr == "" && x.stderr != "" {
			t.Errorf("pawgate %s: a result belongs on stdout, an error on stderr: %q, %q", c.line, x.stdout, x.stderr)
		}
	}
}

// Where nothing could be done, a script is told so by the status.
func TestNothingDone(t *testing.T) {
	x := open(t)
	x.stdin = `[{"name":"a","cron":"0 9 * * 1","task":"x"}]`
	if status := x.run("schedule", "import", "-"); status != exitFailed || !strings.Contains(x.stdout, "say whose it is with --agent-id") || !strings.Contains(x.stderr, "no task was taken over") {
		t.Errorf("exit %d: %s%s", status, x.stdout, x.stderr)
	}
	if status := x.run("audit", "verify", "nobody"); status != exitFailed || !strings.Contains(x.stderr, "no row of agent nobody") {
		t.Errorf("exit %d: %s%s", status, x.stdout, x.stderr)
	}
}

func TestOperatorCommands(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "boss", "--allow", "*", "--role=main")
	x.ok("agent", "create", "--reports-to", "boss", "clerk", "--allow", "list_agents,agent_status", "--allow", "emergency_stop")
	want := "" +
		"ID     STATE   STOPPED  ROLE        REPORTS TO  ALLOWED                                  DENIED  KEYS  LAST USED\n" +
		"boss   active  no       main                    *                                                0     \n" +
		"clerk  active  no       specialist  boss        list_agents agent_status emergency_stop          0     \n"
	if diff := cmp.Diff(want, x.ok("agent", "list")); diff != "" {
		t.Errorf("agent list (-want +got):\n%s", diff)
	}
	if got := x.ok("agent", "deny", "clerk", "emergency_stop", "os_*"); !strings.Contains(got, "notes                    emergency_stop is allowed without effect") ||
		!strings.Contains(got, "notes                    os_* matches no tool") {
		t.Errorf("agent deny: %s", got)
	}
	if got := x.ok("agent", "explain", "clerk", "emergency_stop"); !strings.Contains(got, "agent deny clerk --remove emergency_stop") {
		t.Errorf("agent explain: %s", got)
	}
	var key struct {
		Key   string
		KeyID string `json:"key_id"`
	}
	if err := json.Unmarshal([]byte(x.ok("--json", "key", "create", "clerk", "--scope", "*", "--expires", "1d")), &key); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(key.Key, "paw_test_") {
		t.Errorf("key %q", key.Key)
	}
	if got := x.ok("key", "list", "clerk"); !strings.Contains(got, key.KeyID) || strings.Contains(got, key.Key) {
		t.Errorf("key list: %s", got)
	}
	x.ok("key", "revoke", key.KeyID)
	if got := x.ok("key", "list"); got != "no keys\n" {
		t.Errorf("key list after revoking: %q", got)
	}
	x.ok("stop", "clerk", "--reason", "a loop")
	if got := x.ok("status"); !strings.Contains(got, "reason=a loop") || !strings.Contains(got, "stopped_by=local:") {
		t.Errorf("status: %s", got)
	}
	x.ok("resume", "clerk")
	if got := x.ok("audit", "list", "--agent", "clerk", "--limit", "2"); !strings.Contains(got, "resume") || !strings.Contains(got, "there are more: --cursor ") {
		t.Errorf("audit list: %s", got)
	}
}

// Columns that no result has would be empty for ever.
func TestColumns(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "boss")
	x.ok("agent", "create", "bot", "--reports-to", "boss")
	x.ok("key", "create", "bot", "--expires", "1d")
	x.ok("oauth", "map", "https://login.example.com", "alice", "bot")
	x.ok("memory", "share", "boss", "bot", "--tag", "public", "--until", "1d")
	x.ok("odoo", "connect", "bot", "--url", "https://odoo.example.com", "--database", "prod", "--login", "bot", "--secret", "env://BOT")
	x.ok("person", "set", "mei", "Mei")
	x.ok("pairing", "invite", "bot", "line", "U1")
	x.stdin = "# Bot"
	x.ok("soul", "set", "bot", "-", "--reason", "begin")
	x.ok("channel", "set", "bot", "telegram", "--secret", "env://BOT_TELEGRAM")
	x.ok("channel", "allow", "bot", "telegram", "@team_channel", "--name", "team")
	x.ok("budget", "set", "--agent-id", "bot", "--limit", "5", "--period", "day")
	if _, err := postgrestest.Pool(t, configFromEnv(t)).Exec(t.Context(), `
		with called as (insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, decision, outcome, reason)
		         values (900, '', '', 'outcome', gen_random_uuid(), now(), 'r', 'http', 'bot', 'tools/call', 't', 'allowed', 'fault', 'unavailable')),
		     used as (update api_keys set last_used_at = now()),
		     broken as (update audit_heads set seq = seq + 1 where agent_id = 'bot'),
		     tested as (update odoo_connections set found_at = now(), found_version = '18.0'),
		     sent as (update channels set works_since = now(), last_sent_at = now(), last_error = 'x'),
		     wrote as (insert into odoo_writes values ('w', 'bot', 'r', 'u', 'd', 'bot', 'crm.lead', 'write', '{45}', '[]', '{}', 'done', '', now()))
		insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, state, decided_by, covers, covers_until, expires_at)
		values ('ax', 'bot', 'k', 't', '', '', 'approved', 'me', '{"a": 1}', now() + interval '1 hour', now() + interval '1 hour'),
		       ('ay', 'bot', 'k', 't', '', '', 'pending', null, null, null, now() + interval '1 hour')`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgrestest.Pool(t, configFromEnv(t)).Exec(t.Context(), `
		with asked as (insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot) values ('s1', 'bot', 'boss', 'daily', '0 9 * * *', 'UTC', 'x', now())),
		     fired as (insert into firings (schedule_id, slot, state, missed) values ('s1', now(), 'missed', 3))
		insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, error, finished_at)
		values (gen_random_uuid(), 'prompt', 'schedule', 'bot', 'boss', '{}', gen_random_uuid(), 'dead', 'no model', now())`); err != nil {
		t.Fatal(err)
	}
	spent := usage.Row{At: time.Now(), Agent: "bot", User: "mei", Provider: "anthropic", Model: "claude-sonnet-4-5", Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1, Source: usage.SourceAPI, ID: "1"}
	if _, err := usage.Record(t.Context(), postgrestest.Pool(t, configFromEnv(t)), spent); err != nil {
		t.Fatal(err)
	}
	x.ok("skill", "import", "bot", filepath.Join(tree(t, map[string]string{"pdf/SKILL.md": "# PDF\n\nFills forms.\n"}), "pdf"))
	given := map[string]string{"skill list": "bot", "agent limits": "bot", "soul log": "bot", "agent explain": "bot list_agents", "schedule import": "- --agent-id bot"}
	x.stdin = `[{"name": "mondays", "cron": "0 9 * * 2", "task": "x"}, {"name": "never", "cron": "0 0 30 2 *", "task": "x"}]`
	for _, r := range operatorRows() {
		if r.view.list == "" || r.name == "migrate" { // nothing is left to migrate
			continue
		}
		x.run(append(strings.Fields(r.name+" "+given[r.name]), "--json")...)
		result := lists(t, x.stdout)
		seen := map[string]bool{}
		for _, line := range result[r.view.list] {
			for member := range line {
				seen[member] = true
			}
		}
		for _, c := range r.view.columns {
			if !seen[c.member] {
				t.Errorf("%s: no result has %s: %v", r.name, c.member, result)
			}
		}
	}
}

// lists are the members of a result that are lists of objects.
func lists(t *testing.T, text string) map[string][]map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	result := map[string][]map[string]any{}
	for name, value := range all {
		list, _ := value.([]any)
		for _, element := range list {
			if object, ok := element.(map[string]any); ok {
				result[name] = append(result[name], object)
			}
		}
	}
	return result
}

// Superiors come before those that report to them, whatever the order of the
// files.
func TestAgentImport(t *testing.T) {
	x := open(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.toml", "# clerk\n[agent]\nname = 'clerk'\nreports_to = 'lead'\ncolour = 'red'\n")
	b := write("b.toml", "[agent]\nname = 'lead'\nreports_to = 'boss'\n")
	c := write("c.toml", "[agent]\nname = 'boss'\n")
	got := x.ok("agent", "import", a, b, c)
	for _, part := range []string{"agent clerk created", "agent lead created", "agent boss created", "agent.colour (line 5): is no key", "every tool in DuDuClaw"} {
		if !strings.Contains(got, part) {
			t.Errorf("import does not say %q: %s", part, got)
		}
	}
	if got := x.ok("agent", "export", "clerk"); got != "# clerk\n[agent]\nname = 'clerk'\nreports_to = 'lead'\ncolour = 'red'\n" {
		t.Errorf("exported %q", got)
	}
	bad, orphan := write("bad.toml", "[agent\n"), write("orphan.toml", "[agent]\nname='orphan'\nreports_to='nobody'\n")
	good := write("good.toml", "[agent]\nname='good'\n")
	if status := x.run("agent", "import", bad, orphan, good, a); status != exitFailed {
		t.Errorf("exit %d", status)
	}
	for _, part := range []string{"bad.toml: agent.toml: line 1", "orphan.toml: reports_to: no agent nobody", "a.toml: agent clerk exists"} {
		if !strings.Contains(x.stderr, part) {
			t.Errorf("the errors lack %q: %s", part, x.stderr)
		}
	}
	if !strings.Contains(x.stdout, "agent good created") {
		t.Errorf("one broken file keeps the others out: %s", x.stdout)
	}
	x.stdin = "[agent]\nname = 'good'\nrole = 'planner'\n"
	if got := x.ok("agent", "import", "-", "--replace"); !strings.Contains(got, "agent good replaced") {
		t.Errorf("from stdin: %s", got)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"店員 🧾":               "店員 🧾",
		"\x1b[31mred\x1b[0m": "·[31mred·[0m",
		"a\nb\tc\u202ed":     "a·b·c·d",
		"\u009b31m":          "·31m",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFlags_anywhere(t *testing.T) {
	t.Parallel()
	d := operator.Commands()[slices.IndexFunc(operator.Commands(), func(d tool.Definition) bool { return d.Name == "agent allow" })]
	want := map[string]any{"agent_id": "bot", "patterns": []string{"a_b", "*"}, "remove": true}
	for _, line := range []string{"--remove bot a_b *", "bot --remove a_b *", "bot a_b * --remove", "bot a_b --remove=true *", "--remove -- bot a_b *"} {
		p, err := parse(d.Args, rowOf("agent allow").operands, strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, p.args); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// What a busy port, a broken address and an absent database have to say.
func TestServe_cannotStart(t *testing.T) {
	x := open(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, c := range []struct{ addr, database, says string }{
		{busy.Addr().String(), "", busy.Addr().String() + " is in use by another program, or by pawgate already; PAWGATE_ADDR names another address"},
		{"nonsense", "", "PAWGATE_ADDR must be an address to listen on, such as 127.0.0.1:8080"},
		{"127.0.0.1:0", "postgres://x@" + gone.Addr().String() + "/x", "connection refused; check DATABASE_URL, or leave it unset for a private database"},
	} {
		t.Setenv("PAWGATE_ADDR", c.addr)
		if c.database != "" {
			t.Setenv("DATABASE_URL", c.database)
		}
		if status := x.run("serve"); status != exitFailed || !strings.Contains(x.stderr, c.says) || strings.Count(x.stderr, "\n") != 1 {
			t.Errorf("%s %s: exit %d: %s", c.addr, c.database, status, x.stderr)
		}
	}
}

// The printed lines can be pasted, whatever the folder is called.
func TestShellWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/opt/pawgate/bin/pawgate": "/opt/pawgate/bin/pawgate", "/my tools/it's/pawgate": `'/my tools/it'\''s/pawgate'`, "$HOME": "'$HOME'", "": "''",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}
