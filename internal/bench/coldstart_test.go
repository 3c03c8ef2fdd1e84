//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawgate/internal/postgres/postgrestest"
)

// starts is how often each function is started; the functions take turns.
const starts = 15

// invocations is how many events a function has answered when its peak memory
// is read.
const invocations = 100

// TestColdStart measures exec to the first request for an event on a stand-in
// of the Lambda runtime API, and peak memory, against an empty function.
func TestColdStart(t *testing.T) {
	url := postgrestest.CloneURL(t)
	names := []string{"empty", "router", "admin", "memory", "agent", "control"}
	built := map[string]string{}
	for _, name := range names {
		source := "./functions/" + name
		if name == "empty" {
			source = "./internal/bench/empty"
		}
		built[name] = build(t, source)
	}
	times, peaks := map[string][]time.Duration{}, map[string]int{}
	for range starts {
		for _, name := range names {
			f := startFunction(t, built[name], url)
			times[name] = append(times[name], f.ready)
			f.end()
		}
	}
	for _, name := range names {
		f := startFunction(t, built[name], url)
		peaks[name] = f.peakAfter(t, event(name))
		f.end()
	}
	fmt.Println("| function | binary MB | to first next, ms | of empty | peak MiB | of empty |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	median := func(name string) time.Duration { slices.Sort(times[name]); return times[name][starts/2] }
	for _, name := range names {
		info, err := os.Stat(built[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("| %s | %.1f | %.1f | %.2f | %.1f | %.2f |\n", name, float64(info.Size())/1e6,
			float64(median(name).Microseconds())/1000, float64(median(name))/float64(median("empty")),
			float64(peaks[name])/1024, float64(peaks[name])/float64(peaks["empty"]))
	}
	fmt.Println("\nWhere the start goes: package init, ms")
	for _, name := range []string{"router", "memory"} {
		fmt.Printf("  %s: %s\n", name, initTrace(t, built[name], url))
	}
}

func build(t *testing.T, source string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o", out, source)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, text)
	}
	return out
}

func event(name string) []byte {
	file := map[string]string{"router": "router/tools_list", "admin": "admin/agent_list", "memory": "memory/memory_search",
		"agent": "agent/list_agents", "control": "control/emergency_stop_status"}[name]
	if file == "" {
		return []byte(`{}`)
	}
	content, err := os.ReadFile("../../events/" + file + ".json")
	if err != nil {
		panic(err)
	}
	return content
}

// function is a bootstrap that runs against a runtime API of its own.
type function struct {
	cmd     *exec.Cmd
	server  *http.Server
	next    chan chan []byte // one reply channel for every event asked for
	results chan []byte
	ready   time.Duration
	waiting chan []byte
}

// startFunction runs a bootstrap until it asks for its first event
// (Lambda runtime API 2018-06-01, invocation/next).
func startFunction(t *testing.T, path, database string, extra ...string) *function {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &function{next: make(chan chan []byte), results: make(chan []byte, 1)}
	f.server = &http.Server{Handler: http.HandlerFunc(f.api)}
	go func() { _ = f.server.Serve(listener) }()
	f.cmd = exec.Command(path)
	f.cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=bench", "AWS_SAM_LOCAL=true",
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "DATABASE_URL=" + database}, extra...)
	f.cmd.Stderr = io.Discard
	started := time.Now()
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case f.waiting = <-f.next:
		f.ready = time.Since(started)
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not ask for an event", path)
	}
	return f
}

func (f *function) api(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/next") {
		reply := make(chan []byte)
		f.next <- reply
		event, ok := <-reply
		if !ok {
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(20*time.Second).UnixMilli()))
		_, _ = w.Write(event)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusAccepted)
	f.results <- body
}

// peakAfter answers some events and reads the peak resident memory, in KiB.
func (f *function) peakAfter(t *testing.T, event []byte) int {
	t.Helper()
	for range invocations {
		f.waiting <- event
		if result := <-f.results; bytes.Contains(result, []byte("errorMessage")) {
			t.Fatalf("the function failed: %s", result)
		}
		f.waiting = <-f.next
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var peak int
	for line := range strings.SplitSeq(string(status), "\n") {
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	return peak
}

func (f *function) end() {
	_ = f.cmd.Process.Signal(syscall.SIGKILL)
	_ = f.cmd.Wait()
	_ = f.server.Close()
	close(f.waiting)
}

var initLine = regexp.MustCompile(`init (\S+) @\S+ ms, ([0-9.]+) ms clock`)

// initTrace names the packages whose initialisation takes longest.
func initTrace(t *testing.T, path, database string) string {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = []string{"GODEBUG=inittrace=1", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "DATABASE_URL=" + database, "AWS_SAM_LOCAL=true"}
	out, _ := cmd.CombinedOutput() // it ends because nobody answers
	type cost struct {
		name string
		ms   float64
	}
	var costs []cost
	var total float64
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		c := cost{name: m[1]}
		_, _ = fmt.Sscanf(m[2], "%g", &c.ms)
		total += c.ms
		costs = append(costs, c)
	}
	slices.SortFunc(costs, func(a, b cost) int { return int((b.ms - a.ms) * 1e6) })
	text := fmt.Sprintf("%.1f in all", total)
	for _, c := range costs[:min(len(costs), 6)] {
		text += fmt.Sprintf(", %s %.2f", c.name, c.ms)
	}
	return text
}
