//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres/postgrestest"
)

// sampleKey is the key in events/router; it exists only in test databases.
const sampleKey = "paw_local_sample-key-of-the-committed-events"

// functions builds every function for a target, once per test process.
func functions(t *testing.T, arch string) string {
	t.Helper()
	build, _ := built.LoadOrStore(arch, sync.OnceValues(func() ([]byte, error) {
		return exec.Command("make", "-s", "-C", repoRoot(t), "functions", "ARCH="+arch).CombinedOutput()
	}))
	if out, err := build.(func() ([]byte, error))(); err != nil {
		t.Fatalf("make functions: %v\n%s", err, out)
	}
	return filepath.Join(repoRoot(t), "bin", "lambda", arch)
}

// built holds a build of the functions by architecture.
var built sync.Map

// TestFunctionsBuild: every function is a stripped, static bootstrap for both
// architectures.
func TestFunctionsBuild(t *testing.T) {
	machines := map[string]byte{"arm64": 183, "amd64": 62} // e_machine of ELF
	for arch, machine := range machines {
		dir := functions(t, arch)
		for _, name := range functionNames(t) {
			elf, err := os.ReadFile(filepath.Join(dir, name, "bootstrap"))
			if err != nil {
				t.Fatal(err)
			}
			if elf[18] != machine {
				t.Errorf("%s for %s has machine %d", name, arch, elf[18])
			}
			if bytes.Contains(elf, []byte(".debug_info")) || bytes.Contains(elf, []byte(".symtab\x00")) {
				t.Errorf("%s for %s is not stripped", name, arch)
			}
			t.Logf("%s %s: %.1f MB", name, arch, float64(len(elf))/1e6)
		}
	}
}

func functionNames(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob(filepath.Join(repoRoot(t), "functions", "*", "main.go"))
	if err != nil || len(mains) == 0 {
		t.Fatalf("no functions: %v", err)
	}
	var names []string
	for _, m := range mains {
		names = append(names, filepath.Base(filepath.Dir(m)))
	}
	return names
}

// emulator is one function under the real Runtime Interface Emulator.
type emulator struct {
	endpoint string
	log      *lockedBuffer
}

// startFunction runs a function under the emulator until the test ends.
func startFunction(t *testing.T, name string, env ...string) *emulator {
	t.Helper()
	rie := filepath.Join(repoRoot(t), ".cache", "bin", "aws-lambda-rie")
	if _, err := os.Stat(rie); err != nil {
		unavailable(t, "the Runtime Interface Emulator", "run .ci/lib/rie.sh")
	}
	port, api := freeAddr(t), freeAddr(t)
	e := &emulator{endpoint: "http://" + port, log: &lockedBuffer{}}
	cmd := exec.Command(rie, "--log-level", "error", "--runtime-interface-emulator-address", port, "--runtime-api-address", api, "./bootstrap")
	cmd.Dir = filepath.Join(functions(t, runtime.GOARCH), name)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_LAMBDA_FUNCTION_TIMEOUT=20", "AWS_LAMBDA_FUNCTION_NAME=function"}, env...)
	cmd.Stdout, cmd.Stderr = e.log, e.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitListening(t, port) // its front may listen before the API that the function asks
	awaitListening(t, api)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, e.log)
		}
	})
	return e
}

func awaitListening(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
	}
	t.Errorf("nothing listens on %s", address)
}

// invoke sends an event and gives the function's answer.
func (e *emulator) invoke(t *testing.T, event []byte) []byte {
	t.Helper()
	url := e.endpoint + "/2015-03-31/functions/function/invocations"
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Post(url, "application/json", bytes.NewReader(event))
		if err != nil && time.Now().Before(end) {
			continue // not listening yet
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
}

// database is a migrated database with agent default and the sample key.
func database(t *testing.T) string {
	t.Helper()
	url := postgrestest.CloneURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	sum := sha256.Sum256([]byte(sampleKey))
	if _, err := conn.Exec(t.Context(), `insert into agents (id, allowed_tools) values ('default', '{*}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `insert into api_keys (id, agent_id, hint, hash, scopes) values ('sample', 'default', 'paw_local_', $1, '{*}')`, sum[:]); err != nil {
		t.Fatal(err)
	}
	return url
}

func sampleEvent(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repoRoot(t), "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestEvents replays every committed event against its function under the
// emulator, in the order of the names but stores before searches.
func TestEvents(t *testing.T) {
	url := database(t)
	want := map[string]string{ // what an answer must hold, besides the default
		"router/initialize": `\"protocolVersion\":\"2025-11-25\"`, "router/tools_list": `\"name\":\"memory_search\"`,
		"router/tools_call":      `\"reason\":\"not_configured\"`, // this router has no functions behind it
		"router/discover":        `2026-07-28`,
		"router/unauthenticated": `"statusCode":401`, "router/get": `"statusCode":405`,
		"memory/memory_search": `備份`, "web/web_fetch_metadata": `"reason":"blocked_address"`, "web/web_extract_loopback": `"reason":"blocked_address"`,
		"web/web_search": `"reason":"not_configured"`, "odoo/odoo_connect": `"reason":"not_configured"`, "odoo/odoo_status": `"reason":"not_configured"`, "admin/migrate": `"result"`, "admin/agent_list": `"default"`,
		"tick/scheduled": `"fired":0`, "agent-worker/clock": `{"batchItemFailures":[]}`, "send/send_message_not_configured": `"reason":"not_configured"`, "agent-worker/batch": `{"batchItemFailures":[{"itemIdentifier":"2e1424d4-f796-459a-8184-9c92662be6da"}]}`,
	}
	for _, name := range functionNames(t) {
		files, _ := filepath.Glob(filepath.Join(repoRoot(t), "events", name, "*.json"))
		if len(files) == 0 {
			t.Errorf("function %s has no events", name)
		}
		t.Run(name, func(t *testing.T) {
			e := startFunction(t, name, "DATABASE_URL="+url, "AWS_SAM_LOCAL=true")
			if name == "memory" {
				e.invoke(t, sampleEvent(t, "memory/memory_store"))
			}
			for _, file := range files {
				id := name + "/" + strings.TrimSuffix(filepath.Base(file), ".json")
				answer := string(e.invoke(t, sampleEvent(t, id)))
				part, ok := want[id]
				if !ok && name == "admin" {
					part = `{"result":`
				} else if !ok {
					part = `{"ok":`
				}
				if !strings.Contains(answer, part) {
					t.Errorf("%s: want %s in %.600s", id, part, answer)
				}
			}
		})
	}
}

// TestRouterInvokesCategory: a tools/call goes through the router under one
// emulator to the category under another, through the Lambda Invoke API.
func TestRouterInvokesCategory(t *testing.T) {
	url := database(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	category := startFunction(t, "memory", "DATABASE_URL="+url, "DATABASE_POOLED=true",
		"PAWGATE_ASSERTION_PUBLIC_KEY="+base64.StdEncoding.EncodeToString(public))
	front := startFunction(t, "router", "DATABASE_URL="+url, "DATABASE_POOLED=true", "PAWGATE_FUNCTION_MEMORY=function",
		"AWS_ENDPOINT_URL_LAMBDA="+category.endpoint, "PAWGATE_ASSERTION_KEY="+base64.StdEncoding.EncodeToString(private.Seed()))
	store := gatewayCall(t, front, "memory_store", `{"content":"Quarterly figures 季報 are due on Friday."}`)
	if !strings.Contains(store, `"status":"ok"`) {
		t.Fatalf("store: %s", store)
	}
	if found := gatewayCall(t, front, "memory_search", `{"query":"季報"}`); !strings.Contains(found, "Quarterly figures 季報") {
		t.Errorf("search: %s", found)
	}
	if refused := gatewayCall(t, front, "memory_search", `{"qery":"x"}`); !strings.Contains(refused, `unknown argument \"qery\"`) {
		t.Errorf("bad argument: %s", refused)
	}
	t.Run("the category refuses what the router did not sign", func(t *testing.T) {
		if answer := string(category.invoke(t, sampleEvent(t, "memory/memory_search"))); !strings.Contains(answer, `"reason":"denied"`) {
			t.Errorf("an unsigned call was answered: %s", answer)
		}
	})
	t.Run("A2 F58 the next instance answers alike", func(t *testing.T) {
		second := startFunction(t, "router", "DATABASE_URL="+url, "DATABASE_POOLED=true", "PAWGATE_FUNCTION_MEMORY=function",
			"AWS_ENDPOINT_URL_LAMBDA="+category.endpoint, "PAWGATE_ASSERTION_KEY="+base64.StdEncoding.EncodeToString(private.Seed()))
		if found := gatewayCall(t, second, "memory_search", `{"query":"季報"}`); !strings.Contains(found, "Quarterly figures") {
			t.Errorf("search: %s", found)
		}
	})
}

// TestRouterUnsignedRefusesToStart: without the key nothing could be called.
func TestFunctionWithoutKeyRefusesToStart(t *testing.T) {
	e := startFunction(t, "memory", "DATABASE_URL=postgres://nowhere/x")
	e.invoke(t, sampleEvent(t, "memory/memory_search"))
	if !strings.Contains(e.log.String(), "PAWGATE_ASSERTION_PUBLIC_KEY is not set") {
		t.Errorf("the log does not say why: %s", e.log)
	}
}

// gatewayCall wraps a tools/call in the committed event of the router and
// gives the body of the answer.
func gatewayCall(t *testing.T, e *emulator, name, arguments string) string {
	t.Helper()
	var ev map[string]any
	if err := json.Unmarshal(sampleEvent(t, "router/tools_call"), &ev); err != nil {
		t.Fatal(err)
	}
	ev["body"] = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
	encoded, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	var resp struct {
		StatusCode int
		Body       string
	}
	raw := e.invoke(t, encoded)
	if err := json.Unmarshal(raw, &resp); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("answer %s: %v", raw, err)
	}
	return resp.Body
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
