//go:build e2e

package e2e

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

// TestResilienceLAM03Serve: the server ended every session while nobody
// looked. The next calls succeed all the same, and their writes run once.
func TestResilienceLAM03Serve(t *testing.T) {
	db := startPostgres(t)
	p := startInstance(t, "DATABASE_URL="+db.URL)
	unlimited(t, db.URL)
	c := newClient(p.MCP, p.newKey(t, "default"))
	for _, wait := range []time.Duration{0, 1500 * time.Millisecond} {
		t.Run(fmt.Sprintf("%s later", wait), func(t *testing.T) {
			warm := newLoad("warm "+wait.String(), c)
			warm.during(16, func() { time.Sleep(300 * time.Millisecond) })
			ended := terminateIdle(t, db.URL)
			time.Sleep(wait)
			l := newLoad("after "+wait.String(), c)
			l.during(8, func() { time.Sleep(300 * time.Millisecond) })
			l.verify(t, db.URL)
			t.Logf("%d sessions were ended", ended)
			if ended == 0 || len(l.calls) > 1 {
				t.Errorf("after %d sessions were ended, calls came to %v", ended, l.calls)
			}
		})
	}
}

// bootstraps are the function processes that were started with this mark, not
// their emulators.
func bootstraps(mark string) []int {
	var found []int
	for _, pid := range processesWith(mark) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(exe) == "bootstrap" {
			found = append(found, pid)
		}
	}
	return found
}

// freeze stops functions, does something, and lets them go on, as Lambda does
// between two calls.
func freeze(t *testing.T, mark string, meanwhile func()) {
	t.Helper()
	pids := bootstraps(mark)
	if len(pids) == 0 {
		t.Fatal("no function runs")
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	meanwhile()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// lambdaAPI is the Invoke API over several emulators, by the function's name.
func lambdaAPI(t *testing.T, functions map[string]*emulator) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := strings.Split(strings.Trim(req.URL.Path, "/"), "/")[2]
		resp, err := http.Post(functions[name].endpoint+"/2015-03-31/functions/function/invocations", "application/json", req.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// TestResilienceLAM03Frozen: the router and the functions behind it are frozen
// between calls and their sessions end meanwhile. Each tool answers as it did
// before, and a write runs once.
func TestResilienceLAM03Frozen(t *testing.T) {
	url := database(t)
	mark := fmt.Sprintf("PAWGATE_E2E_MARK=%d", time.Now().UnixNano())
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	behind := map[string]*emulator{}
	front := []string{mark, "DATABASE_URL=" + url, "PAWGATE_ASSERTION_KEY=" + base64.StdEncoding.EncodeToString(private.Seed())}
	for _, name := range []string{"memory", "agent", "control"} {
		behind[name] = startFunction(t, name, mark, "DATABASE_URL="+url, "PAWGATE_ASSERTION_PUBLIC_KEY="+base64.StdEncoding.EncodeToString(public))
		front = append(front, "PAWGATE_FUNCTION_"+strings.ToUpper(name)+"="+name)
	}
	router := startFunction(t, "router", append(front, "AWS_ENDPOINT_URL_LAMBDA="+lambdaAPI(t, behind))...)
	call := func(tool, arguments string) string {
		t.Helper()
		answer := gatewayCall(t, router, tool, arguments)
		if !strings.Contains(answer, `\"status\":\"ok\"`) {
			t.Errorf("%s: %s", tool, answer)
		}
		return answer
	}
	reads := map[string]string{
		"memory_search": `{"query":"凍結"}`, "list_agents": `{}`, "emergency_stop": `{"action":"status"}`,
	}
	call("memory_store", `{"content":"Stored before the freeze 凍結"}`)
	before := map[string]string{}
	for tool, arguments := range reads {
		before[tool] = call(tool, arguments)
	}
	for _, c := range []struct {
		name      string
		meanwhile func()
	}{
		{"its sessions ended just now", func() { terminateIdle(t, url) }},
		{"its sessions ended long ago", func() { terminateIdle(t, url); time.Sleep(1500 * time.Millisecond) }},
		{"nothing else happened", func() { time.Sleep(1500 * time.Millisecond) }},
	} {
		t.Run("LAM-03 F58 "+c.name, func(t *testing.T) {
			freeze(t, mark, c.meanwhile)
			note := "Stored after the freeze: " + c.name
			call("memory_store", fmt.Sprintf(`{"content":%q}`, note))
			if n := query[int](t, url, "select sum(times_stored)::int from memories where content = $1", note); n != 1 {
				t.Errorf("the write ran %d times", n)
			}
			freeze(t, mark, c.meanwhile)
			call("agent_status", `{"agent_id":"default"}`) // which tells of the calls made since
			for tool, arguments := range reads {
				if after := call(tool, arguments); unscored(after) != unscored(before[tool]) {
					t.Errorf("%s before %s\nafter %s", tool, before[tool], after)
				}
			}
		})
	}
}

// unscored leaves out of an answer what changes with what else is stored.
func unscored(answer string) string {
	return regexp.MustCompile(`\\?"(score|total|relevance)\\?":[0-9.]+`).ReplaceAllString(answer, "")
}

// TestResilienceLAM04Pools: two hundred instances start at once in front of a
// server that has room for a quarter of them. Each holds two connections at
// most; who finds no place is told so at once, and is served when there is one.
func TestResilienceLAM04Pools(t *testing.T) {
	const instances = 200
	db := startPostgres(t, "max_connections=50")
	var mu sync.Mutex
	var wg sync.WaitGroup
	served, refused, most := 0, 0, int32(0)
	slowest := time.Duration(0)
	for range instances {
		wg.Go(func() {
			pool, err := postgres.Open(context.Background(), postgres.Config{URL: db.URL})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer pool.Close()
			for first := true; ; first = false {
				began := time.Now()
				_, err := postgres.Exec(context.Background(), pool, "select pg_sleep(0.2)", pgx.StrictNamedArgs{})
				took := time.Since(began)
				mu.Lock()
				most = max(most, pool.Stat().TotalConns())
				if err == nil {
					served++
					mu.Unlock()
					return
				}
				if f, ok := fault.Of(err); !ok || f.Reason != fault.Unavailable || f.RetryAfter <= 0 {
					t.Errorf("refused with %v", err)
				}
				if first {
					refused++
				}
				slowest = max(slowest, took)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	t.Logf("%d instances: %d were refused at first, the slowest after %s; all %d were served", instances, refused, slowest.Round(time.Millisecond), served)
	if served != instances || refused == 0 || most > 2 {
		t.Errorf("served %d, refused %d at first, at most %d connections each", served, refused, most)
	}
	if slowest > 3*time.Second {
		t.Errorf("a refusal took %s", slowest)
	}
}

// TestResilienceLAM04Functions: the same with real functions.
func TestResilienceLAM04Functions(t *testing.T) {
	const instances = 20
	db := startPostgres(t, "max_connections=45", "superuser_reserved_connections=0")
	storeForSample(t, db.URL)
	emulators := make([]*emulator, instances)
	for i := range emulators {
		emulators[i] = startFunction(t, "memory", "DATABASE_URL="+db.URL, "AWS_SAM_LOCAL=true")
	}
	event := sampleEvent(t, "memory/memory_search")
	all := func(want string) time.Duration {
		t.Helper()
		began := time.Now()
		var wg sync.WaitGroup
		for _, e := range emulators {
			wg.Go(func() {
				if answer := string(e.invoke(t, event)); !strings.Contains(answer, want) {
					t.Errorf("want %s in %.300s", want, answer)
				}
			})
		}
		wg.Wait()
		return time.Since(began).Round(time.Millisecond)
	}
	cold, warm := all(`{"ok":`), all(`{"ok":`)
	held := query[int](t, db.URL, "select count(*) from pg_stat_activity where application_name = 'pawgate'")
	t.Logf("%d functions at once: cold %s, warm %s, %d connections held", instances, cold, warm, held)
	if held < instances || held > 2*instances {
		t.Errorf("%d functions hold %d connections, want one or two each", instances, held)
	}
	release := occupy(t, db.URL)
	full := all(`"reason":"unavailable"`)
	release()
	t.Logf("the server is full: all refused in %s; then all served in %s", full, all(`{"ok":`))
	if full > 5*time.Second {
		t.Errorf("refusals took %s", full)
	}
}

// storeForSample migrates a database and makes the agent of the sample events.
func storeForSample(t *testing.T, url string) {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DATABASE_URL=" + url}
	if out, err := runProcess(t, time.Minute, "", env, binary(t), "migrate"); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	if out, err := runProcess(t, time.Minute, "", env, binary(t), "agent", "create", "default"); err != nil {
		t.Fatalf("agent create: %v\n%s", err, out)
	}
}

// occupy takes every connection that a server has, also those of others.
func occupy(t *testing.T, url string) (release func()) {
	t.Helper()
	var held []*pgx.Conn
	connect := func() bool {
		conn, err := pgx.Connect(context.Background(), url)
		if err == nil {
			held = append(held, conn)
		}
		return err == nil
	}
	if !connect() {
		t.Fatal("cannot connect")
	}
	for connect() {
	}
	// The places of the functions' own sessions are taken as they fall free.
	if _, err := held[0].Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawgate'"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "no session of a function is left", func() bool {
		for connect() {
		}
		var n int
		err := held[0].QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = 'pawgate'").Scan(&n)
		return err == nil && n == 0
	})
	for connect() {
	}
	return func() {
		for _, conn := range held {
			conn.Close(context.Background())
		}
	}
}
