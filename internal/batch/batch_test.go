package batch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/batch"
)

// TestShares: whoever comes while a group runs goes with the next, and each
// gets its own result.
func TestShares(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	q := &batch.Queue[int, int]{Most: 10, Workers: 1, Timeout: time.Second, Run: func(_ context.Context, group []int) ([]int, error) {
		runs.Add(1)
		time.Sleep(5 * time.Millisecond)
		out := make([]int, len(group))
		for i, n := range group {
			out[i] = n * 2
		}
		return out, nil
	}}
	var group sync.WaitGroup
	for n := range 100 {
		group.Go(func() {
			if got, err := q.Do(t.Context(), n); err != nil || got != n*2 {
				t.Errorf("%d: %d, %v", n, got, err)
			}
		})
	}
	group.Wait()
	if n := runs.Load(); n < 10 || n > 40 {
		t.Errorf("%d groups for 100 callers", n)
	}
}

// TestFailsTogether: an error is everybody's, and the next group runs.
func TestFailsTogether(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	fail := true
	q := &batch.Queue[int, int]{Most: 10, Workers: 1, Timeout: time.Second, Run: func(_ context.Context, group []int) ([]int, error) {
		if fail {
			fail = false
			return nil, broken
		}
		return group, nil
	}}
	if _, err := q.Do(t.Context(), 1); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got, err := q.Do(t.Context(), 2); err != nil || got != 2 {
		t.Errorf("%d, %v", got, err)
	}
}

// TestLeaves: a caller that leaves ends nothing for the others.
func TestLeaves(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	q := &batch.Queue[int, int]{Most: 10, Workers: 1, Timeout: time.Second, Run: func(ctx context.Context, group []int) ([]int, error) {
		<-release
		return group, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Do(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(release)
	if got, err := q.Do(t.Context(), 2); err != nil || got != 2 {
		t.Errorf("%d, %v", got, err)
	}
}
