//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// claudeBound is how long any one run of the CLI may take, on a busy machine;
// one takes about a second. hangBound tells a failed connection from a hang: the
// CLI gives up by itself on a server that says nothing, after 30 s.
const (
	claudeBound = 60 * time.Second
	hangBound   = 20 * time.Second
)

// claudePaths are the Claude Code binaries to test with, from CLAUDE_BIN (a
// path list, as .ci/lib/claude.sh prints it) or from .cache. Two are pinned,
// one for each generation of the protocol: 2.1.197 knows the initialize
// handshake only, 2.1.332 tries server/discover of 2026-07-28 first.
func claudePaths(t testing.TB) []string {
	t.Helper()
	paths := filepath.SplitList(os.Getenv("CLAUDE_BIN"))
	if len(paths) == 0 {
		nested := filepath.Join("node_modules", "@anthropic-ai", "claude-code-linux-*", "claude")
		base := filepath.Join(repoRoot(t), ".cache", "npm", "claude")
		for _, pattern := range []string{nested, filepath.Join("node_modules", "*", nested)} {
			found, err := filepath.Glob(filepath.Join(base, pattern))
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, found...)
		}
	}
	if len(paths) == 0 {
		unavailable(t, "Claude Code", "run .ci/lib/claude.sh and set CLAUDE_BIN to what it prints")
	}
	return paths
}

// claude is the real CLI with a home, a configuration and a project folder of
// its own, and no way out but the loopback interface.
type claude struct {
	Home    string
	Project string
	env     []string
}

// newClaude prepares a fresh home for the binary at path. Later entries of env
// win over the ones set here.
func newClaude(t *testing.T, path string, env ...string) *claude {
	t.Helper()
	home := t.TempDir()
	c := &claude{Home: home, Project: filepath.Join(home, "project")}
	bin := filepath.Join(home, "bin")
	for _, dir := range []string{c.Project, bin, c.config()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(path, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	guard := startGuard(t)
	c.env = append([]string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + home, "CLAUDE_CONFIG_DIR=" + c.config(), "TERM=dumb",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"ENABLE_TOOL_SEARCH=false", // the newest version hides MCP tools behind a search else
		"HTTP_PROXY=" + guard, "HTTPS_PROXY=" + guard, "NO_PROXY=127.0.0.1,localhost",
	}, env...)
	return c
}

func (c *claude) config() string { return filepath.Join(c.Home, ".claude") }

// startGuard is a proxy that lets nothing through. What asks it for anything
// fails the test, since that would have left the machine.
func startGuard(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.Host)
		http.Error(w, "the tests stay on this machine", http.StatusForbidden)
	}))
	t.Cleanup(func() {
		srv.Close()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) > 0 {
			slices.Sort(asked)
			t.Errorf("the client tried to leave the machine: %v", slices.Compact(asked))
		}
	})
	return srv.URL
}

// shell runs one line as a user would type it in the project folder.
func (c *claude) shell(t *testing.T, line string) string {
	t.Helper()
	out, err := runProcess(t, claudeBound, c.Project, c.env, "/bin/sh", "-c", line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// run is `claude args…` in the project folder, which must succeed.
func (c *claude) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runProcess(t, claudeBound, c.Project, c.env, filepath.Join(c.Home, "bin", "claude"), args...)
	if err != nil {
		t.Fatalf("claude %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// serverLine is one line of `claude mcp list`: a name, its target, its health.
var serverLine = regexp.MustCompile(`(?m)^([\w-]+): (.+) - (\S+ .+)$`)

// connected is the health of a server that answers and lists its tools.
const connected = "✔ Connected"

// health is what `claude mcp list` says of each server.
func (c *claude) health(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	out := c.run(t, "mcp", "list")
	for _, m := range serverLine.FindAllStringSubmatch(out, -1) {
		found[m[1]] = m[3]
	}
	if len(found) == 0 {
		t.Fatalf("claude mcp list named no server:\n%s", out)
	}
	return found
}

// wantConnected fails unless exactly these servers are listed, all connected.
func (c *claude) wantConnected(t *testing.T, names ...string) {
	t.Helper()
	health := c.health(t)
	for _, name := range names {
		if got := health[name]; got != connected {
			t.Errorf("server %s: health %q, want %s", name, got, connected)
		}
	}
	if len(health) != len(names) {
		t.Errorf("servers listed: %v, want just %v", health, names)
	}
}

// prompt lets the CLI run one task against the scripted model and gives its
// final text. Only the tools named are allowed without asking.
func (c *claude) prompt(t *testing.T, model *modelStub, text string, allowed ...string) string {
	t.Helper()
	withModel := *c
	withModel.env = append(slices.Clone(c.env),
		"ANTHROPIC_BASE_URL="+model.URL, "ANTHROPIC_API_KEY=sk-ant-scripted", "ANTHROPIC_MODEL=claude-sonnet-4-5")
	out := withModel.run(t, "-p", text, "--output-format", "json", "--allowedTools", strings.Join(allowed, ","))
	var answer struct {
		IsError bool   `json:"is_error"`
		Result  string `json:"result"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.IsError {
		t.Fatalf("claude -p: error %v, is_error %v\n%s", err, answer.IsError, out)
	}
	return answer.Result
}
