package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawgate/internal/postgres/postgrestest"
)

func TestApprovals(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "bot", "--allow", "*")
	db := postgrestest.Pool(t, configFromEnv(t))
	for _, id := range []string{"a2one", "a2two"} {
		if _, err := db.Exec(t.Context(), `insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, arguments, because, expires_at)
			values ($1, 'bot', 'k', 'send_message', '', '', '{"to": "u1"}', 'rule 1', now() + interval '15 minutes')`, id); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.ok("approve", "list"); !strings.Contains(got, "a2one") || !strings.Contains(got, `{"to":"u1"}`) {
		t.Errorf("approve list: %s", got)
	}
	if status := x.run("approve", "a2"); status != exitUsage {
		t.Errorf("a short prefix: exit %d, %s", status, x.stderr)
	}
	if got := x.ok("approve", "a2one", "--for-minutes", "5", "--same", "to"); !strings.Contains(got, "such calls need no approval until covers_until") {
		t.Errorf("approve: %s", got)
	}
	if got := x.ok("deny", "a2tw", "--reason", "too late"); !strings.Contains(got, "denied") {
		t.Errorf("deny: %s", got)
	}
	if got := x.ok("grant", "list", "bot"); !strings.Contains(got, "a2one") || strings.Contains(got, "a2two") {
		t.Errorf("grant list: %s", got)
	}
	x.ok("grant", "revoke", "a2one")
	if got := x.ok("grant", "list"); got != "no grant or approval is alive\n" {
		t.Errorf("after revoking: %s", got)
	}
}

func TestAgentRules(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "bot", "--allow", "*")
	file := filepath.Join(t.TempDir(), "rules.toml")
	if err := os.WriteFile(file, []byte("[[policy]]\ntool = 'list_agents'\neffect = 'ask'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := x.ok("agent", "rules", "bot", file); !strings.Contains(got, "1: ask list_agents") || strings.Contains(got, "policy") {
		t.Errorf("set from a file: %s", got)
	}
	x.stdin = `[{"tool":"list_agents","effect":"forbid","when":[{"arg":"limit","op":"gt","value":5}]}]`
	if got := x.ok("agent", "rules", "bot", "-"); !strings.Contains(got, "1: forbid list_agents when limit gt 5") {
		t.Errorf("set from stdin: %s", got)
	}
	if got := x.ok("agent", "rules", "bot", "--json"); !strings.Contains(got, `"policy": [`) {
		t.Errorf("as JSON: %s", got)
	}
	if got := x.ok("agent", "explain", "bot", "list_agents", `{"limit":6}`); !strings.Contains(got, "refuses  rule 1 of agent bot forbids it") || !strings.Contains(got, "agent rules bot --remove 1") {
		t.Errorf("explain: %s", got)
	}
	x.stdin = ""
	if status := x.run("agent", "rules", "bot", "-"); status != exitFailed || !strings.Contains(x.stderr, "--clear") {
		t.Errorf("an empty file: exit %d, %s", status, x.stderr)
	}
	if got := x.ok("agent", "rules", "bot", "--remove", "1"); strings.Contains(got, "forbid") {
		t.Errorf("removed: %s", got)
	}
}

// A trail that was tampered with fails the command, so that a job notices.
func TestAuditVerify_fails(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "bot")
	if _, err := postgrestest.Pool(t, configFromEnv(t)).Exec(t.Context(), `update audit_heads set hash = '' where agent_id = 'bot'`); err != nil {
		t.Fatal(err)
	}
	if status := x.run("audit", "verify"); status != exitFailed || !strings.Contains(x.stdout, "the newest rows are missing") || !strings.Contains(x.stderr, "broken in 1 place") {
		t.Errorf("exit %d: %s%s", status, x.stdout, x.stderr)
	}
}

func TestLicence(t *testing.T) {
	x := open(t)
	fields := strings.Fields(x.ok("licence", "key"))
	t.Setenv("PAWGATE_LICENCE_SIGNING_KEY", fields[1])
	t.Setenv("PAWGATE_LICENCE_KEY", fields[3])
	token := strings.TrimSpace(x.ok("licence", "make", "--customer", "Example Ltd", "--edition", "pro", "--expires", "365d", "--agents", "2"))
	if strings.Contains(x.stdout+x.stderr, fields[1]) {
		t.Error("the private key is shown")
	}
	for _, want := range []string{"state     valid", "customer  Example Ltd", "edition   pro", "agents    2"} {
		if got := x.ok("licence", "check", token); !strings.Contains(got, want) {
			t.Errorf("licence check lacks %q: %s", want, got)
		}
	}
	for _, line := range [][]string{
		{"--customer", "x", "--edition", "gold", "--expires", "1d"}, {"--customer", "x", "--edition", "pro", "--expires", "soon"},
		{"--customer", "x", "--edition", "pro", "--expires", "2020-01-01"}, {"--edition", "pro", "--expires", "1d"}, {"--colour", "red"},
	} {
		if status := x.run(append([]string{"licence", "make"}, line...)...); status != exitUsage {
			t.Errorf("%v: exit %d: %s", line, status, x.stderr)
		}
	}
	t.Setenv("PAWGATE_LICENCE", token)
	x.ok("agent", "create", "a")
	x.ok("agent", "create", "b")
	if status := x.run("agent", "create", "c"); status != exitFailed || !strings.Contains(x.stderr, "the licence is for 2 agents") {
		t.Errorf("a third agent: exit %d: %s", status, x.stderr)
	}
	t.Setenv("PAWGATE_LICENCE", token+"x")
	if status := x.run("licence", "check"); status != exitFailed || !strings.Contains(x.stderr, "PAWGATE_LICENCE: licence refused") {
		t.Errorf("a broken licence: exit %d: %s", status, x.stderr)
	}
	x.ok("stop") // must not wait for a licence
}

// H70: a reference that leads nowhere is an error that names the setting.
func TestOperatorCommands_H70_missing_secret(t *testing.T) {
	x := open(t)
	t.Setenv("PAWGATE_LICENCE", "env://PAWGATE_TEST_NO_SUCH_VARIABLE")
	if status := x.run("agent", "list"); status != exitFailed || !strings.Contains(x.stderr, "PAWGATE_LICENCE") {
		t.Errorf("exit %d: %s", status, x.stderr)
	}
}
