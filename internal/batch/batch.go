// Package batch lets callers that come at the same time share one statement.
//
// While a statement is under way, those that arrive wait for the next one. Under
// load a round trip, and a commit, serves many; alone, a caller waits for
// nobody. Nothing is delayed to fill a batch, and nothing is kept between
// batches.
package batch

import (
	"context"
	"sync"
	"time"
)

// Queue hands what callers bring to run, in groups. run gives one result for
// each, in their order, or an error for all.
type Queue[In, Out any] struct {
	// Run does the work. Its context is of no single caller: one that leaves
	// must not end what the others wait for.
	Run func(ctx context.Context, group []In) ([]Out, error)
	// Most is how many go into one group, Workers how many groups are under
	// way at once, Timeout how long one may take.
	Most, Workers int
	Timeout       time.Duration

	mu      sync.Mutex
	waiting []waiter[In, Out]
	working int
}

type waiter[In, Out any] struct {
	in   In
	done chan result[Out]
}

type result[Out any] struct {
	out Out
	err error
}

// Do returns this caller's result. It is ctx's error when ctx ends first; the
// work is then done all the same.
func (q *Queue[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	w := waiter[In, Out]{in: in, done: make(chan result[Out], 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	start := q.working < q.Workers
	if start {
		q.working++
	}
	q.mu.Unlock()
	if start {
		go q.drain() // not on the caller's goroutine: it would serve everybody but itself
	}
	select {
	case r := <-w.done:
		return r.out, r.err
	case <-ctx.Done():
		var none Out
		return none, ctx.Err()
	}
}

// drain runs groups until nobody waits.
func (q *Queue[In, Out]) drain() {
	for {
		q.mu.Lock()
		n := min(len(q.waiting), q.Most)
		if n == 0 {
			q.working--
			q.mu.Unlock()
			return
		}
		group := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		q.mu.Unlock()
		q.serve(group)
	}
}

func (q *Queue[In, Out]) serve(group []waiter[In, Out]) {
	ctx, cancel := context.WithTimeout(context.Background(), q.Timeout)
	defer cancel()
	ins := make([]In, len(group))
	for i, w := range group {
		ins[i] = w.in
	}
	outs, err := q.Run(ctx, ins)
	for i, w := range group {
		r := result[Out]{err: err}
		if err == nil {
			r.out = outs[i]
		}
		w.done <- r
	}
}
