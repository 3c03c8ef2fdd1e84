//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestClaude drives the real Claude Code CLI against one running pawgate, in
// each pinned version.
func TestClaude(t *testing.T) {
	paths := claudePaths(t)
	p := startPawgate(t)
	spoken := map[string]string{} // by CLI version
	for _, path := range paths {
		version, err := runProcess(t, claudeBound, t.TempDir(), []string{"HOME=" + t.TempDir()}, path, "--version")
		if err != nil {
			t.Fatalf("%s --version: %v\n%s", path, err, version)
		}
		version, _, _ = strings.Cut(version, " ")
		t.Run(version, func(t *testing.T) {
			t.Run("revision", func(t *testing.T) { spoken[version] = testRevision(t, path, p) })
			t.Run("printed_lines", func(t *testing.T) { testPrintedLines(t, path, p) })
			t.Run("wrong_key", func(t *testing.T) { testWrongKey(t, path, p) })
			t.Run("readme_sample", func(t *testing.T) { testReadmeSample(t, path, p) })
			t.Run("model_calls_tools", func(t *testing.T) { testModelCallsTools(t, path, p) })
			t.Run("refusals_reach_the_model", func(t *testing.T) { testRefusals(t, path, p) })
		})
	}
	if len(spoken) < 2 {
		return // -run or CLAUDE_BIN picked fewer than the pinned ones
	}
	revisions := slices.Sorted(maps.Values(spoken))
	if diff := cmp.Diff([]string{"2025-11-25", "2026-07-28"}, revisions); diff != "" {
		t.Errorf("revisions that the pinned releases speak (-want +got):\n%s", diff)
	}
}

// testRevision connects over HTTP and gives the protocol revision that the CLI
// and pawgate settled on: the one in the headers of the last request.
func testRevision(t *testing.T, path string, p *pawgate) string {
	to, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	var settled atomic.Value
	srv := reverseProxy(t, func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if v := r.In.Header.Get("Mcp-Protocol-Version"); v != "" {
			settled.Store(v)
		}
	})
	c := newClaude(t, path)
	add(t, c, &pawgate{MCP: srv.URL + "/mcp"}, "pawgate", "http", p.Key)
	c.wantConnected(t, "pawgate")
	revision, _ := settled.Load().(string)
	t.Logf("speaks MCP %s", revision)
	return revision
}

// printedLine is a command that `pawgate serve` prints for its user to paste.
var printedLine = regexp.MustCompile(`(?m)^[\s$]*(claude mcp add .*\S)\s*$`)

// printedLines are the lines of serve that add it to Claude Code, by transport.
func printedLines(t *testing.T, p *pawgate) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for _, m := range printedLine.FindAllStringSubmatch(p.stdout.String()+p.stderr.String(), -1) {
		transport := "stdio"
		if strings.Contains(m[1], "--transport http") {
			transport = "http"
		}
		lines[transport] = m[1]
	}
	if len(lines) != 2 {
		t.Fatalf("serve printed %d `claude mcp add` lines of two transports:\n%s", len(lines), p.stdout.String())
	}
	return lines
}

// transports are the ways from the CLI to pawgate: a stdio shim on the same
// store, streamable HTTP, and the shim as a bridge to a remote router.
var transports = []string{"stdio", "http", "bridge"}

// add gives c the server called name over one transport.
func add(t *testing.T, c *claude, p *pawgate, name, transport, key string) {
	t.Helper()
	switch transport {
	case "stdio":
		c.run(t, "mcp", "add", name, "--", p.Bin, "mcp-server")
	case "http":
		c.run(t, "mcp", "add", "--transport", "http", name, p.MCP, "--header", "Authorization: Bearer "+key)
	case "bridge":
		c.run(t, "mcp", "add", name, "-e", "PAWGATE_URL="+p.MCP, "-e", "PAWGATE_KEY="+key, "--", p.Bin, "mcp-server")
	}
}

// The lines that serve prints work when pasted, from any folder.
func testPrintedLines(t *testing.T, path string, p *pawgate) {
	for transport, line := range printedLines(t, p) {
		t.Run(transport, func(t *testing.T) {
			c := newClaude(t, path, storeEnv(p)...)
			c.shell(t, line)
			c.wantConnected(t, "pawgate")
		})
	}
}

// storeEnv is what a stdio shim needs to find the store of p, without the
// search path and home that the CLI has for itself.
func storeEnv(p *pawgate) []string {
	return slices.DeleteFunc(slices.Clone(p.Env), func(kv string) bool {
		return strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "HOME=")
	})
}

// A wrong key shows as a failure, at once, whichever door it is tried at.
func testWrongKey(t *testing.T, path string, p *pawgate) {
	wrong := p.Key[:len(p.Key)-4] + "aaaa"
	c := newClaude(t, path)
	add(t, c, p, "over-http", "http", wrong)
	add(t, c, p, "over-bridge", "bridge", wrong)
	begin := time.Now()
	health := c.health(t)
	if took := time.Since(begin); took > hangBound {
		t.Errorf("claude mcp list took %s with wrong keys: that is a hang to its user", took)
	}
	for _, name := range []string{"over-http", "over-bridge"} {
		got := health[name]
		if !strings.HasPrefix(got, "✘ Failed to connect") && !strings.Contains(got, "Needs authentication") {
			t.Errorf("server %s with a wrong key: health %q, want a failed authentication", name, got)
		}
		t.Logf("%s: %s", name, got)
	}
}

// The sample .mcp.json of the README works as printed, from any folder, for a
// user whose search path has pawgate. Its local servers need nothing else; its
// remote ones need the address and the key exported.
func testReadmeSample(t *testing.T, path string, p *pawgate) {
	sample := readmeSample(t)
	var file struct {
		Servers map[string]struct {
			Command string `json:"command"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(sample), &file); err != nil || len(file.Servers) == 0 {
		t.Fatalf("README sample is no .mcp.json: %v\n%s", err, sample)
	}
	c := newClaude(t, path, storeEnv(p)...)
	c.env[0] += string(os.PathListSeparator) + filepath.Dir(p.Bin)
	write(t, filepath.Join(c.Project, ".mcp.json"), sample)
	// A project's servers wait for the user's yes; this is that yes.
	write(t, filepath.Join(c.config(), "settings.json"), `{"enableAllProjectMcpServers":true}`)
	health := c.health(t)
	for name, server := range file.Servers {
		if got := health[name]; server.Command != "" && got != connected {
			t.Errorf("server %s of the sample: health %q, want %s", name, got, connected)
		}
	}
	c.env = append(c.env, "PAWGATE_URL="+p.MCP, "PAWGATE_KEY="+p.Key)
	c.wantConnected(t, slices.Collect(maps.Keys(file.Servers))...)
}

// The sample stands between these two lines of README.md, in a json fence.
const (
	sampleBegin = "<!-- sample .mcp.json -->"
	sampleEnd   = "<!-- end of sample -->"
)

// readmeSample is the sample .mcp.json, as the README prints it.
func readmeSample(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(repoRoot(t), "README.md"))
	if err != nil {
		t.Fatalf("read README: %v", err)
	}
	_, rest, found := strings.Cut(string(readme), sampleBegin)
	sample, _, closed := strings.Cut(rest, sampleEnd)
	if !found || !closed {
		t.Fatalf("README.md has no %q … %q", sampleBegin, sampleEnd)
	}
	sample = strings.TrimSpace(sample)
	sample = strings.TrimSuffix(strings.TrimPrefix(sample, "```json"), "```")
	return sample
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The model's tool calls reach pawgate through the CLI and come back whole.
func testModelCallsTools(t *testing.T, path string, p *pawgate) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, path, storeEnv(p)...)
			add(t, c, p, "pawgate", transport, p.Key)
			checkStoreAndSearch(t, c, "備份在 "+t.Name())
		})
	}
}

// checkStoreAndSearch lets a scripted model store a memory and find it again.
func checkStoreAndSearch(t *testing.T, c *claude, content string) {
	t.Helper()
	const store, search = "mcp__pawgate__memory_store", "mcp__pawgate__memory_search"
	model := startModel(t,
		modelTurn{Tool: store, Input: map[string]any{"content": content, "tags": []string{"e2e"}}},
		modelTurn{Tool: search, Input: map[string]any{"query": "備份"}},
		modelTurn{Text: "stored and found"},
	)
	if got := c.prompt(t, model, "keep a memory, then find it", store, search); got != "stored and found" {
		t.Errorf("final text %q, want the script's", got)
	}
	for _, tool := range []string{store, search} {
		if !slices.Contains(model.Tools(), tool) {
			t.Errorf("the model was not offered %s, only %v", tool, model.Tools())
		}
	}
	results := model.Results()
	if len(results) != 2 {
		t.Fatalf("got %d tool results, want 2: %+v", len(results), results)
	}
	for i, r := range results {
		if status := resultStatus(t, r); status != "ok" || r.IsError {
			t.Errorf("tool result %d: status %q, is_error %v, want ok: %s", i+1, status, r.IsError, r.Text)
		}
	}
	if !strings.Contains(results[1].Text, content) {
		t.Errorf("the memory stored first is not among those found: %s", results[1].Text)
	}
}

// resultStatus is the field status of a result's JSON object. The CLI may add a
// reminder of its own for the model after it, nothing else.
func resultStatus(t *testing.T, r toolResult) string {
	t.Helper()
	var body struct {
		Status string `json:"status"`
	}
	dec := json.NewDecoder(strings.NewReader(r.Text))
	if err := dec.Decode(&body); err != nil {
		t.Errorf("tool result is no JSON object: %v: %s", err, r.Text)
	}
	rest := strings.TrimSpace(r.Text[dec.InputOffset():])
	if rest != "" && !strings.HasPrefix(rest, "<system-reminder>") {
		t.Errorf("tool result goes on after its JSON object: %s", r.Text)
	}
	return body.Status
}

// A broken call comes back to the model as an error that names the argument,
// and does not end the run.
func testRefusals(t *testing.T, path string, p *pawgate) {
	const store = "mcp__pawgate__memory_store"
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, path, storeEnv(p)...)
			add(t, c, p, "pawgate", transport, p.Key)
			model := startModel(t, modelTurn{Tool: store, Input: map[string]any{}}, modelTurn{Text: "understood"})
			if got := c.prompt(t, model, "keep nothing", store); got != "understood" {
				t.Errorf("final text %q, want the script's", got)
			}
			results := model.Results()
			if len(results) != 1 || !results[0].IsError || !strings.Contains(results[0].Text, "content") {
				t.Errorf("got %+v, want one error that names the argument content", results)
			}
		})
	}
}
