//go:build bench

package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// round is how long one server is under load at a time; the servers take
// turns, so that a noisy machine is noisy for all.
const (
	round  = 2 * time.Second
	rounds = 4
)

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`

type echo struct {
	Text string `json:"text" doc:"Text to give back"`
}

// TestGate compares a trivial read through the whole gate, with its decision
// and its audit row in Postgres, with a bare mcp-go server and a bare JSON
// handler, side by side in one run.
func TestGate(t *testing.T) {
	servers := []struct {
		name string
		h    http.Handler
	}{
		{"bare net/http JSON handler", http.HandlerFunc(bareHandler)},
		{"bare mcp-go echo server", bareMCP()},
		{"pawgate, whole gate", gate(t)},
	}
	fmt.Println("| server | connections | calls/s | p50 ms | p99 ms | of bare mcp-go |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for _, connections := range []int{1, 4, 16} {
		samples := make([]sample, len(servers))
		for range rounds {
			for i, s := range servers {
				samples[i] = append(samples[i], load(t, s.h, connections)...)
			}
		}
		base := float64(len(samples[1]))
		for i, s := range servers {
			slices.Sort(samples[i])
			fmt.Printf("| %s | %d | %.0f | %.2f | %.2f | %.2f |\n", s.name, connections,
				float64(len(samples[i]))/(rounds*round.Seconds()), samples[i].at(50), samples[i].at(99), float64(len(samples[i]))/base)
		}
	}
}

// sample is the durations of calls.
type sample []time.Duration

// at is a percentile, in milliseconds.
func (s sample) at(percent int) float64 {
	return float64(s[len(s)*percent/100].Microseconds()) / 1000
}

// load posts the call over kept-alive connections for one round.
func load(t *testing.T, h http.Handler, connections int) sample {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	var all sample
	var mu sync.Mutex
	var group sync.WaitGroup
	end := time.Now().Add(round)
	for range connections {
		group.Go(func() {
			var own sample
			for time.Now().Before(end) {
				started := time.Now()
				if err := post(client, srv.URL+"/mcp"); err != nil {
					t.Error(err)
					return
				}
				own = append(own, time.Since(started))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	group.Wait()
	return all
}

func post(client *http.Client, url string) error {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(call))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer paw_bench")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(body, []byte("hello")) || bytes.Contains(body, []byte(`"isError":true`)) {
		return fmt.Errorf("HTTP %d %s %v", resp.StatusCode, body, err)
	}
	return nil
}

func bareHandler(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`)
}

func bareMCP() http.Handler {
	s := server.NewMCPServer("bare", "1", server.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	return server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true))
}

func gate(t *testing.T) http.Handler {
	t.Helper()
	return gateOver(t, postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 16}))
}

// gateOver is a router with an agent without limits and one trivial tool.
func gateOver(t *testing.T, db *pgxpool.Pool) http.Handler {
	t.Helper()
	sum := sha256.Sum256([]byte("paw_bench"))
	if _, err := db.Exec(t.Context(), `insert into agents (id, allowed_tools, limits) values ('bench', '{*}',
		'{"credential": {"burst": 1e9, "per_minute": 1e9}, "read": {"burst": 1e9, "per_minute": 1e9}}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `insert into api_keys (id, agent_id, hint, hash, scopes) values ('bench', 'bench', '', $1, '{*}')`, sum[:]); err != nil {
		t.Fatal(err)
	}
	category := tool.Category{Name: "bench", Tools: []tool.Tool{
		tool.Read("echo", "Give the text back.", func(_ context.Context, _ caller.Caller, a echo) (echo, error) { return a, nil }),
	}}
	tools, err := catalog.Of(category)
	if err != nil {
		t.Fatal(err)
	}
	return router.New(router.Config{
		Version: "bench", Catalog: tools, DB: db, Now: time.Now, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		Backends: map[string]router.Backend{"bench": router.InProcess{Table: tool.Assemble(category)}},
	})
}
