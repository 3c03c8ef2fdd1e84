package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder as DuDuClaw lays it out goes in and comes out, byte for byte.
func TestAgent_folder(t *testing.T) {
	x := open(t)
	dir := t.TempDir()
	source, soul := "# kept\r\n[agent]\r\nname = 'clerk' # too\r\nshift = 'night'\r\n", "\ufeff# 店員\r\n\r\n"
	for name, text := range map[string]string{"agent.toml": source, "SOUL.md": soul} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := x.ok("agent", "import", filepath.Join(dir, "agent.toml")); !strings.Contains(out, "soul version 1") {
		t.Errorf("import says %s", out)
	}
	if got := x.ok("agent", "export", "clerk"); got != source {
		t.Errorf("agent.toml is %q, want %q", got, source)
	}
	if got := x.ok("agent", "export", "clerk", "--soul"); got != soul {
		t.Errorf("SOUL.md is %q, want %q", got, soul)
	}
	if got := x.ok("soul", "show", "clerk"); got != soul {
		t.Errorf("soul show prints %q", got)
	}
	x.stdin = "# Clerk\n"
	if out := x.ok("soul", "set", "clerk", "-", "--reason", "shorter"); !strings.Contains(out, "version") || strings.Contains(out, "@@") {
		t.Errorf("soul set prints %s", out)
	}
	if out := x.ok("soul", "diff", "clerk"); !strings.Contains(out, "\n+# Clerk\n") {
		t.Errorf("soul diff prints %s", out)
	}
	x.ok("soul", "rollback", "clerk", "1")
	if out := x.ok("soul", "log", "clerk"); !strings.Contains(out, "back to version 1.") || strings.Count(out, "\n") != 4 {
		t.Errorf("soul log prints %s", out)
	}
	x.stdin = "a\xff"
	if x.run("soul", "set", "clerk", "-"); !strings.Contains(x.stderr, "is not UTF-8") {
		t.Errorf("broken UTF-8: %s", x.stderr)
	}
}

// A file of any name goes in with the persona that is named, or is refused.
func TestAgent_import_soul(t *testing.T) {
	x := open(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"clerk.toml": "[agent]\nname = 'clerk'\n", "agent.toml": "[agent]\nname = 'bot'\n", "SOUL.md": "# Beside\n", "clerk.md": "# Clerk\r\n", "empty.md": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"of two":     {at("clerk.toml"), at("agent.toml"), "--soul", at("clerk.md")},
		"on stdin":   {at("clerk.toml"), "--soul", "-"},
		"empty":      {at("clerk.toml"), "--soul", at("empty.md")},
		"not a file": {at("clerk.toml"), "--soul", at("none.md")},
	} {
		if code := x.run(append([]string{"agent", "import"}, args...)...); code == 0 {
			t.Errorf("%s: imported", name)
		}
	}
	x.ok("agent", "import", at("clerk.toml"), "--soul", at("clerk.md"))
	x.ok("agent", "import", at("agent.toml"), "--soul", at("clerk.md"))
	for _, agent := range []string{"clerk", "bot"} {
		if got := x.ok("agent", "export", agent, "--soul"); got != "# Clerk\r\n" {
			t.Errorf("SOUL.md of %s is %q", agent, got)
		}
	}
}

func TestAgent_status(t *testing.T) {
	x := open(t)
	if out := x.ok("agent", "status"); !strings.Contains(out, "no agents") {
		t.Errorf("without agents: %s", out)
	}
	x.ok("agent", "create", "clerk")
	x.ok("stop", "clerk")
	out := x.ok("agent", "status")
	for _, part := range []string{"STATE", "COST TODAY", "clerk", "stopped"} {
		if !strings.Contains(out, part) {
			t.Errorf("the table lacks %q:\n%s", part, out)
		}
	}
	if out := x.ok("agent", "status", "clerk", "--json"); !strings.Contains(out, `"calls_24h": 0`) {
		t.Errorf("--json prints %s", out)
	}
	x.ok("agent", "archive", "clerk")
	if out := x.ok("agent", "status"); strings.Contains(out, "clerk") {
		t.Errorf("an archived agent is listed:\n%s", out)
	}
	x.ok("agent", "restore", "clerk")
}
