//go:build e2e && sam

package e2e

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// TestSAMLocal runs the built functions in the SAM CLI's containers, against a
// PostgreSQL on the host: one call at a time, then as services with the real
// Claude Code CLI in front.
func TestSAMLocal(t *testing.T) {
	s := newSAM(t).withEngine(t)
	s.run(t, "build")
	s = s.with("DATABASE_URL="+s.forContainers(t, database(t)), "DATABASE_POOLED=true")
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signing := "PAWGATE_ASSERTION_KEY=" + base64.StdEncoding.EncodeToString(private.Seed())
	checking := "PAWGATE_ASSERTION_PUBLIC_KEY=" + base64.StdEncoding.EncodeToString(public)

	t.Run("invoke", func(t *testing.T) { testSAMInvoke(t, s.with(signing)) })
	t.Run("services", func(t *testing.T) {
		gateway := s.gateway(t)
		invokeAPI := s.with(checking).serve(t, "start-lambda", gateway)
		_, port, _ := net.SplitHostPort(invokeAPI)
		front := s.with(signing, "AWS_ENDPOINT_URL_LAMBDA=http://host.docker.internal:"+port).serve(t, "start-api", "127.0.0.1")
		t.Run("invoke_api", func(t *testing.T) { testSAMInvokeAPI(t, invokeAPI) })
		t.Run("http", func(t *testing.T) { testSAMFront(t, "http://"+front) })
		t.Run("claude", func(t *testing.T) { testSAMClaude(t, "http://"+front+"/mcp") })
	})
}

// A memory stored by one container is found by the next.
func testSAMInvoke(t *testing.T, s samCLI) {
	var stored struct {
		OK struct {
			ID string `json:"memory_id"`
		} `json:"ok"`
	}
	raw := s.invoke(t, "MemoryFunction", "events/memory/memory_store.json")
	if err := json.Unmarshal(raw, &stored); err != nil || stored.OK.ID == "" {
		t.Fatalf("memory_store: %v: %s", err, raw)
	}
	found := string(s.invoke(t, "MemoryFunction", "events/memory/memory_search.json"))
	if !strings.Contains(found, stored.OK.ID) || !strings.Contains(found, "備份") {
		t.Errorf("the memory %s is not found: %s", stored.OK.ID, found)
	}
	answers := []struct{ function, event, part string }{
		{"AgentFunction", "agent/list_agents", `"default"`},
		{"ControlFunction", "control/emergency_stop_status", `"running"`},
		{"AdminFunction", "admin/migrate", `"applied"`},
		{"RouterFunction", "router/initialize", `2025-11-25`},
		{"RouterFunction", "router/unauthenticated", `401`},
	}
	for _, want := range answers {
		if got := string(s.invoke(t, want.function, "events/"+want.event+".json")); !strings.Contains(got, want.part) {
			t.Errorf("%s: want %s in %.600s", want.event, want.part, got)
		}
	}
}

// The Invoke API knows functions by the names that the router is given, and a
// category behind it refuses what the router did not sign.
func testSAMInvokeAPI(t *testing.T, addr string) {
	client := lambda.New(lambda.Options{Region: "eu-west-1", BaseEndpoint: aws.String("http://" + addr),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), RetryMaxAttempts: 1})
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String("MemoryFunction:live"), Payload: sampleEvent(t, "memory/memory_search")})
	if err != nil || out.FunctionError != nil {
		t.Fatalf("invoke: %v, function error %s", err, aws.ToString(out.FunctionError))
	}
	if !strings.Contains(string(out.Payload), `"denied"`) {
		t.Errorf("an unsigned call was answered: %s", out.Payload)
	}
}

// testSAMFront speaks to the router as API Gateway's stand-in hands it on.
func testSAMFront(t *testing.T, base string) {
	for _, want := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/healthz", "", 200}, {http.MethodGet, "/nothing-here", "", 404},
		{http.MethodGet, "/mcp", "", 405}, {http.MethodDelete, "/mcp", "", 405},
		{http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 401},
	} {
		if status, _, body := samRequest(t, want.method, base+want.path, "", "", want.body); status != want.status {
			t.Errorf("%s %s: status %d, want %d: %s", want.method, want.path, status, want.status, body)
		}
	}
	store := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_store","arguments":{"content":"a backup (備份) through the gateway"}}}`
	if status, _, body := samRequest(t, http.MethodPost, base+"/mcp", sampleKey, "application/json, text/event-stream", store); status != 200 {
		t.Fatalf("memory_store: status %d: %s", status, body)
	}
	call := `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"備份"}}}`
	t.Run("F52_event_stream_is_whole", func(t *testing.T) {
		for _, accept := range []string{"application/json, text/event-stream", "text/event-stream", "application/json"} {
			status, kind, body := samRequest(t, http.MethodPost, base+"/mcp", sampleKey, accept, call)
			if accept != "application/json, text/event-stream" && status/100 == 4 {
				continue // the protocol asks for both; a clear refusal is whole too
			}
			if strings.HasPrefix(kind, "text/event-stream") {
				data, ok := strings.CutSuffix(body, "\n\n")
				if _, data, _ = strings.Cut(data, "data: "); !ok {
					t.Errorf("accepting %s: the stream breaks off: %q", accept, body)
				}
				body = data
			}
			if status != 200 || !json.Valid([]byte(body)) || !strings.Contains(body, `"id":9007199254740993`) || !strings.Contains(body, "備份") {
				t.Errorf("accepting %s: status %d, %s: %s", accept, status, kind, body)
			}
		}
	})
}

// samRequest is one request; key and accept may be empty.
func samRequest(t *testing.T, method, url, key, accept, body string) (status int, kind, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(content)
}

// The real Claude Code CLI reports the server connected, and a scripted model
// stores and finds a memory through gateway, router and category. The CLI is
// told to wait: the gateway's stand-in may take a second for a message, and the
// newest CLI lets the model begin meanwhile. The emulator in the gateway's
// container takes one invocation at a time and can lose one that comes beside
// another, as the CLI's first GET and POST do; the CLI then waits 5 s for tools
// and says so, which is not the router's doing. It is asked up to three times.
func testSAMClaude(t *testing.T, endpoint string) {
	for i, path := range claudePaths(t) {
		t.Run(fmt.Sprintf("release_%d", i+1), func(t *testing.T) {
			c := newClaude(t, path, "MCP_CONNECTION_NONBLOCKING=false", "MCP_TIMEOUT=60000", "MCP_CONNECT_TIMEOUT_MS=60000")
			c.run(t, "mcp", "add", "--transport", "http", "pawgate", endpoint, "--header", "Authorization: Bearer "+sampleKey)
			for range 2 {
				health := c.health(t)["pawgate"]
				if health == connected {
					break
				}
				t.Logf("asked again: %s", health)
			}
			c.wantConnected(t, "pawgate")
			checkStoreAndSearch(t, c, "備份 through "+t.Name())
		})
	}
}
