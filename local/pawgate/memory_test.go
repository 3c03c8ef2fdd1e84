package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pawgate/internal/operator"
)

const duduclaw = "../../internal/category/memory/testdata/duduclaw.db"

// What one machine exports another imports, a DuDuClaw database among them.
func TestMemory(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "clerk")
	x.ok("agent", "create", "heir")
	file := filepath.Join(t.TempDir(), "clerk.jsonl")

	if got := x.ok("memory", "import", "clerk", duduclaw, "--owner", "dudu", "--dry-run"); !strings.Contains(got, "would_store  46") || !strings.Contains(got, "of another owner=4") ||
		!strings.Contains(x.stderr, "46 would be stored") || strings.Contains(got+x.stderr, " stored  ") {
		t.Errorf("dry run: %s%s", got, x.stderr)
	}
	if got := x.ok("memory", "import", "clerk", duduclaw, "--dry-run", "--json"); !strings.Contains(got, `"would_store": 48`) || strings.Contains(got, `"stored"`) {
		t.Errorf("dry run as JSON: %s", got)
	}
	if got := x.ok("memory", "export", "clerk"); got != "" {
		t.Errorf("the dry run kept: %s", got)
	}
	var done struct {
		Read, Stored, Known int
		Skipped             map[string]int
	}
	if err := json.Unmarshal([]byte(x.ok("memory", "import", "clerk", duduclaw, "--json")), &done); err != nil || done.Stored != 48 || done.Skipped["no readable time"] != 1 {
		t.Errorf("all owners: %+v %v", done, err)
	}
	if !strings.Contains(x.stderr, "53 read, 48 stored") {
		t.Errorf("no progress: %q", x.stderr)
	}
	x.ok("memory", "export", "clerk", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	x.ok("memory", "import", "heir", file)
	exported, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if number := regexp.MustCompile(`"(origin_trust|importance)":\d+\.\d{4,}`).Find(exported); number != nil {
		t.Errorf("a number is not as it was given: %s", number)
	}
	if again := x.ok("memory", "export", "heir"); again != string(exported) || again == "" {
		t.Errorf("there and back:\n%s", again)
	}
	x.stdin = strings.Join([]string{`{"type":"memory","content":"from a pipe"}`, "", "bro\x00ken", "bro\xffken", ""}, "\n")
	if got := x.ok("memory", "import", "heir", "-"); !strings.Contains(got, "not valid JSON=2") || !strings.Contains(got, "stored") {
		t.Errorf("from standard input: %s", got)
	}
	for _, c := range []struct {
		line   []string
		status int
		says   string
	}{
		{[]string{"import", "clerk", file, "--owner", "dudu"}, exitUsage, "--owner is for a DuDuClaw database"},
		{[]string{"import", "clerk", filepath.Join(t.TempDir(), "none")}, exitFailed, "no such file"},
		{[]string{"import", "nobody", file}, exitFailed, "no agent nobody"},
		{[]string{"import", "clerk"}, exitUsage, "FILE is missing"},
		{[]string{"export", "nobody", file + ".none"}, exitFailed, "no agent nobody"},
		{[]string{"export", "clerk", "--after", "5"}, exitUsage, "unknown flag --after"},
		{[]string{"backfill", "clerk"}, exitFailed, "EMBEDDINGS_URL"},
		{[]string{"import", "clerk", "memory_test.go"}, exitFailed, "nothing was taken"},
		{[]string{"export", "clerk", t.TempDir()}, exitUsage, "is a folder; name a file in it"},
		{[]string{"export", "clerk", filepath.Join(t.TempDir(), "none", "x.jsonl")}, exitFailed, filepath.Join("none", "x.jsonl") + ": no such file"},
	} {
		if status := x.run(append([]string{"memory"}, c.line...)...); status != c.status || !strings.Contains(x.stderr, c.says) {
			t.Errorf("memory %s: exit %d, %s", c.line, status, x.stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("a failed export left %v", left)
	}
}

// vectors is a server for embeddings.
func vectors(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Errorf("request: %v", err)
		}
		data := make([]map[string]any, len(asked.Input))
		for i := range data {
			data[i] = map[string]any{"index": i, "embedding": []float32{1, 0}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func TestMemoryBackfill(t *testing.T) {
	x := open(t)
	t.Setenv("EMBEDDINGS_URL", vectors(t))
	t.Setenv("EMBEDDINGS_MODEL", "small")
	x.ok("agent", "create", "clerk")
	x.ok("memory", "import", "clerk", duduclaw)
	for _, want := range []string{"done     4", "done     0"} {
		if got := x.ok("memory", "backfill", "clerk"); !strings.Contains(got, want) || !strings.Contains(got, "missing  0") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The operator who set the address reads what is wrong with it, and no
// internal error.
func TestMemoryBackfill_noServer(t *testing.T) {
	x := open(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	t.Setenv("EMBEDDINGS_URL", gone.URL+"/v1")
	x.ok("agent", "create", "clerk")
	x.ok("memory", "import", "clerk", duduclaw)
	if status := x.run("memory", "backfill", "clerk"); status != exitFailed || !strings.Contains(x.stderr, "EMBEDDINGS_URL gives no vectors: ask for embeddings: dial tcp") || strings.Contains(x.stderr, "/v1") {
		t.Errorf("exit %d: %s", status, x.stderr)
	}
}

// A deployment is asked for part after part, none too large for a function.
func TestMemory_stack(t *testing.T) {
	x := open(t)
	o, closeDB, err := operator.Open(t.Context(), operator.Settings{Config: configFromEnv(t), Env: "prod"}, "admin-function", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	const lambdaLimit = 6 << 20
	calls := cloud(t, func(w http.ResponseWriter, r *http.Request) {
		var request operator.Request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, lambdaLimit)).Decode(&request); err != nil {
			t.Errorf("payload: %v", err)
		}
		answer, err := json.Marshal(o.Handle(r.Context(), "aws-request-1", request))
		if err != nil || len(answer) > lambdaLimit {
			t.Errorf("answer of %d bytes, error %v", len(answer), err)
		}
		_, _ = w.Write(answer)
	})
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none") // nothing may run here
	x.ok("--stack", "shop", "agent", "create", "clerk")
	var lines strings.Builder
	for i := range 6 {
		line, err := json.Marshal(map[string]any{"type": "memory", "content": strings.Repeat(string(rune('a'+i))+"<", 400_000)})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	x.stdin = lines.String()
	before := calls.Load()
	if got := x.ok("--stack", "shop", "memory", "import", "clerk", "-"); !strings.Contains(got, "stored   6") || calls.Load()-before < 3 {
		t.Errorf("%d calls: %s", calls.Load()-before, got)
	}
	before = calls.Load()
	if got := x.ok("--stack", "shop", "memory", "export", "clerk"); strings.Count(got, "\n") != 6 || calls.Load()-before < 4 {
		t.Errorf("%d calls, %d lines", calls.Load()-before, strings.Count(got, "\n"))
	}
}
