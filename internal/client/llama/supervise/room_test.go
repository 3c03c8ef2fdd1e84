package supervise_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
)

// Ten starts of the same server make one process.
func TestStart_B_68_one_at_a_time(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	sp := spec("a", llamatest.Program(t, llamatest.Shebang, "load:300ms"))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if v, err := s.Start(t.Context(), sp); err != nil || v.State != supervise.Ready {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
	all.Wait()
	if alive, _ := running(t, cfg.Dir); len(alive) != 1 {
		t.Errorf("processes: %q", alive)
	}
	other := sp
	other.Args = []string{"-c", "1"}
	if _, err := s.Start(t.Context(), other); reason(err) != fault.Conflict {
		t.Errorf("other options: %v", err)
	}
}

// At capacity a server that is loading is never the one to go.
func TestStart_M_106_capacity(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Max = 1
	s := open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Start(ctx, spec("slow", llamatest.Program(t, llamatest.Shebang, "load:500ms"))); err != nil {
		t.Fatal(err)
	}
	next := spec("next", llamatest.Program(t, llamatest.Shebang, "ok"))
	if _, err := s.Start(t.Context(), next); reason(err) != fault.Conflict {
		t.Fatalf("while the first is loading: %v", err)
	}
	until(t, "ready", func() bool { return state(s, "slow") == supervise.Ready })
	lease, err := s.Lease("slow")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), next); reason(err) != fault.Conflict {
		t.Fatalf("while the first answers: %v", err)
	}
	lease.Release()
	if v := start(t, s, next); v.State != supervise.Ready || state(s, "slow") != "" {
		t.Errorf("an idle one makes room: %+v, slow is %q", v, state(s, "slow"))
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	sp := spec("a", llamatest.Program(t, llamatest.Shebang, "ok"))
	sp.TTL = 300 * time.Millisecond
	start(t, s, sp)
	lease, err := s.Lease("")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	if state(s, "a") != supervise.Ready {
		t.Fatal("ended while it was used")
	}
	lease.Release()
	until(t, "ended", func() bool { return state(s, "a") == "" })
}
