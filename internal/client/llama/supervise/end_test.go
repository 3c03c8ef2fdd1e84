package supervise_test

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/client/llama/supervise"
)

// A server that crashes again and again: each process is waited for, with a
// pause before the next, and in the end it is given up.
func TestCrash_INF_08_fifty_times(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	var mu sync.Mutex
	var pauses []int
	cfg.MaxRestarts = 50
	cfg.Backoff = func(n int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		pauses = append(pauses, n)
		return time.Millisecond
	}
	s := open(t, cfg)
	start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "crash:20ms")))
	until(t, "given up", func() bool { return state(s, "a") == supervise.Failed })
	v := s.List()[0]
	if v.Failure.Reason != supervise.Crashed || v.Restarts != 50 || len(pauses) != 50 || pauses[49] != 49 {
		t.Errorf("got %+v %+v after %d pauses", v, v.Failure, len(pauses))
	}
	alive, zombies := running(t, cfg.Dir)
	if len(alive)+len(zombies) > 0 {
		t.Errorf("left: %q, zombies %q", alive, zombies)
	}
}

func TestCrash_recovers(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "ok")))
	lease, err := s.Lease("a")
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, lease.URL+"/crash", nil)
	req.Header.Set("Authorization", "Bearer "+lease.Key)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		t.Fatalf("it did not crash: %d", resp.StatusCode)
	}
	lease.Release()
	until(t, "back", func() bool { v := s.List(); return v[0].State == supervise.Ready && v[0].Restarts == 1 })
	if after, err := s.Lease("a"); err != nil || after.Key == lease.Key {
		t.Errorf("a new process has a new key: %v", err)
	}
}

func TestStop_stubborn_and_with_children(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"stubborn", "child"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.StopTimeout = 200 * time.Millisecond
			s := open(t, cfg)
			start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, mode)))
			if !stop(t, s, "a") {
				t.Error("nothing stopped")
			}
			if alive, _ := running(t, cfg.Dir); len(alive) > 0 {
				t.Errorf("still running: %q", alive)
			}
			if runtime.GOOS == "linux" && mode == "child" {
				until(t, "its child is gone", func() bool { alive, _ := running(t, "/bin/sleep\x0061"); return len(alive) == 0 })
			}
		})
	}
}

func TestStop_while_loading(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	sp := spec("a", llamatest.Program(t, llamatest.Shebang, "hang"))
	done := make(chan supervise.Server, 1)
	go func() { v, _ := s.Start(context.Background(), sp); done <- v }()
	until(t, "starting", func() bool { return state(s, "a") == supervise.Starting })
	if !stop(t, s, "a") {
		t.Error("nothing stopped")
	}
	if v := <-done; v.State != supervise.Stopped || v.Failure != nil {
		t.Errorf("who waited for the start is told %+v", v)
	}
}
