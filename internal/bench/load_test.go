//go:build bench

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// clients is how many connections are under way at once.
const clients = 200

// TestLoad sends 200 clients through the whole gate with a policy of 50 rules
// for LOAD_SECONDS (120): every decision must be the right one, every answer
// must have its audit row, and the chain must hold.
func TestLoad(t *testing.T) {
	seconds := 120 * time.Second
	if s, err := time.ParseDuration(os.Getenv("LOAD_SECONDS") + "s"); err == nil {
		seconds = s
	}
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 16})
	srv := httptest.NewServer(gateOver(t, db))
	defer srv.Close()
	var rules []map[string]any
	for i := range 50 {
		rules = append(rules, map[string]any{"tool": "echo", "effect": "forbid",
			"when": []map[string]any{{"arg": "text", "op": "starts_with", "value": fmt.Sprintf("bad-%02d-", i)}}})
	}
	encoded, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `update agents set rules = $1::jsonb`, string(encoded)); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	var mu sync.Mutex
	var all sample
	var wrong, answered atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(seconds)
	for n := range clients {
		group.Go(func() {
			var own sample
			for i := 0; time.Now().Before(end); i++ {
				forbidden := i%3 == 0
				text := fmt.Sprintf("good-%02d-", i%50)
				if forbidden {
					text = fmt.Sprintf("bad-%02d-", (i+n)%50)
				}
				started := time.Now()
				body, err := ask(client, srv.URL+"/mcp", text)
				if err != nil {
					t.Error(err)
					return
				}
				own = append(own, time.Since(started))
				answered.Add(1)
				if strings.Contains(body, "forbidden_by_rule") != forbidden || strings.Contains(body, text) == forbidden {
					wrong.Add(1)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	group.Wait()
	slices.Sort(all)
	var recorded, broken int64
	if err := db.QueryRow(t.Context(), `select count(*) filter (where kind = 'outcome' or decision = 'refused'), (select count(*) from audit_verify()) from audit`).Scan(&recorded, &broken); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("| 200 clients, 50 rules, %s | %.0f calls/s | p50 %.1f ms | p99 %.1f ms | %d answers | %d audit rows | %d wrong |\n",
		seconds, float64(len(all))/seconds.Seconds(), all.at(50), all.at(99), answered.Load(), recorded, wrong.Load())
	if wrong.Load() > 0 || recorded != answered.Load() || broken > 0 {
		t.Errorf("%d wrong decisions, %d answers, %d audit rows, %d broken places in the chain", wrong.Load(), answered.Load(), recorded, broken)
	}
}

func ask(client *http.Client, url, text string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(strings.Replace(call, "hello", text, 1)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer paw_bench")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
