package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client of the shim hears of a start that takes long while it lasts, and of
// its end after that.
func TestProgressOverStdio(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "default", "--allow", "*")
	folder := t.TempDir()
	t.Setenv("PAWGATE_LLAMAFILES", folder)
	t.Setenv("PAWGATE_DATA", t.TempDir())
	if err := os.WriteFile(filepath.Join(folder, "one.llamafile"), []byte("#!/bin/sh\nsleep 1\necho goodbye\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	x.stdin = `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"llamafile_start","arguments":{},"_meta":{"progressToken":"p"}}}` + "\n"
	lines := strings.Split(strings.TrimSpace(x.ok("mcp-server")), "\n")
	for i, line := range lines {
		last := i == len(lines)-1
		switch {
		case last && !strings.Contains(line, `"id":"call"`), last && !strings.Contains(line, `\"reason\":\"exited_early\"`):
			t.Errorf("the answer: %s", line)
		case !last && !strings.HasPrefix(line, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":`):
			t.Errorf("line %d: %s", i, line)
		}
	}
	if len(lines) < 3 {
		t.Errorf("too few reports: %q", lines)
	}
}
