package sidecar_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// door is a way to the same model: through the sidecar, or straight.
type door struct{ url, key string }

// straight is the model's own server, which nobody else can talk to.
func (r real) straight() door {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.data, "llama", "model-real.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var record struct{ Port int }
	if err := json.Unmarshal(b, &record); err != nil {
		r.t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(r.data, "llama", "model-real.key"))
	if err != nil {
		r.t.Fatal(err)
	}
	return door{fmt.Sprintf("http://127.0.0.1:%d", record.Port), strings.TrimSpace(string(key))}
}

// stream asks and counts the events until the answer is over, and the time
// until the first.
func (d door) stream(t *testing.T, body string) (events int, first, all time.Duration) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.key)
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: {") {
			if events++; events == 1 {
				first = time.Since(began)
			}
		}
	}
	if resp.StatusCode != http.StatusOK || events == 0 {
		t.Fatalf("HTTP %d, %d events", resp.StatusCode, events)
	}
	return events, first, time.Since(began)
}

// TestReal_overhead compares the sidecar with its own model server, in turn
// within one run, each figure as sidecar / straight. The server has one thread:
// with as many as the machine has cores the two programs measure how they share
// them. PAWGATE_BENCH=1 runs it and prints the numbers. A model in
// use answers in seconds; this one in fractions, so the share shown here is an
// upper bound.
func TestReal_overhead(t *testing.T) {
	if os.Getenv("PAWGATE_BENCH") == "" {
		t.Skip("a measurement: PAWGATE_BENCH=1 runs it")
	}
	r := startReal(t)
	began := time.Now()
	loaded := r.must("llamafile", "llamafile_start", `{"file":"real.gguf","context_size":2048,"wait_seconds":170,"args":["--parallel","1","--threads","1"]}`)
	started := time.Since(began)
	sidecar, straight := door{r.url, realKey}, r.straight()
	const say = `{"stream":true,"temperature":0,"cache_prompt":false,"max_tokens":%d,"messages":[{"role":"user","content":"Count from one to a hundred in words."}]%s}`
	const tools = `,"tools":[{"type":"function","function":{"name":"memory_search","description":"Find memories","parameters":{"type":"object","properties":{"query":{"type":"string"}}}}}]`
	_, first, _ := sidecar.stream(t, fmt.Sprintf(say, 2, ""))
	t.Logf("from llamafile_start to the first token: call %s, of which %v; then first token %s", started.Round(time.Millisecond), loaded["start_phases"], first.Round(time.Millisecond))
	for name, body := range map[string]string{"chat of 64 tokens": fmt.Sprintf(say, 64, ""), "tool call of 8 tokens": fmt.Sprintf(say, 8, tools)} {
		var through, direct, firstThrough, firstDirect, restThrough, restDirect []float64
		for range 12 { // in turn, so that what else the machine does hits both
			n, first, all := straight.stream(t, body)
			direct, firstDirect, restDirect = append(direct, all.Seconds()/float64(n)), append(firstDirect, first.Seconds()), append(restDirect, (all-first).Seconds()/float64(n-1))
			n, first, all = sidecar.stream(t, body)
			through, firstThrough, restThrough = append(through, all.Seconds()/float64(n)), append(firstThrough, first.Seconds()), append(restThrough, (all-first).Seconds()/float64(n-1))
		}
		t.Logf("%s: %s an event; until the first %s; each further %s", name, compare(through, direct), compare(firstThrough, firstDirect), compare(restThrough, restDirect))
		if slices.Min(through)/slices.Min(direct) > 1.25 {
			t.Errorf("%s: the sidecar's fastest run takes %.2f times the straight one", name, slices.Min(through)/slices.Min(direct))
		}
	}
}

// compare tells medians and their ratio, and that of the fastest runs, which
// other work on the machine disturbs least.
func compare(through, direct []float64) string {
	slices.Sort(through)
	slices.Sort(direct)
	a, b := through[len(through)/2], direct[len(direct)/2]
	return fmt.Sprintf("%.2f / %.2f ms = %.3f (fastest %.2f / %.2f ms = %.3f)", a*1e3, b*1e3, a/b, through[0]*1e3, direct[0]*1e3, through[0]/direct[0])
}
