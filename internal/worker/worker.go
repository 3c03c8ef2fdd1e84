// Package worker does the work of the queue: it answers prompts with the model
// loop and makes single tool calls, both through the gate, in the name of the
// agent whose work it is.
//
// A run is known to the gate by its item (the credential work:ID), has the
// scopes of whoever asked, never to approve or to administer, and may call no
// tool that an agent in narrowed_by may not. A single call has the item as its
// idempotency key, so that an attempt after one that was lost does not do it
// again. What a model does in a run that is lost
// half-way can be done again by the next attempt.
//
// The worker keeps the lease while it works and stops when it has lost it: to
// another worker, to an emergency stop, or because the database is away for
// longer than the lease. Nothing is recorded then but by whoever holds it.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"pawgate/internal/loop"
	"pawgate/internal/router"
	"pawgate/internal/work"
)

// Runner answers a prompt: loop.Loop, or a test's own.
type Runner interface {
	Run(ctx context.Context, q loop.Request) (loop.Result, error)
}

// Worker does work. Queue, Gate, Runner and Narrow are required.
type Worker struct {
	Queue work.Queue
	// Gate opens the gate for one identity.
	Gate func(router.Identity) loop.Gate
	// Runner makes a runner whose calls go through a gate. It fails when no
	// model is configured.
	Runner func(loop.Gate) (Runner, error)
	// Narrow gives the tools that agents leave to work they asked for; nil when
	// there is nothing to narrow.
	Narrow func(ctx context.Context, l work.Leased) ([]string, error)
	// Tell tells SQS at once of what a batch has made due: a notice of a result,
	// or what waited for its place. nil: workers look for themselves.
	Tell   func(context.Context)
	Models Models
	Log    *slog.Logger
}

// Models are the models of tiers, and of agents that name none.
type Models struct {
	Default   string `ignored:"true"`
	Cheap     string `envconfig:"PAWGATE_MODEL_CHEAP" desc:"model of ephemeral agents of tier cheap; unset: the agent's own"`
	Preferred string `envconfig:"PAWGATE_MODEL_PREFERRED" desc:"model of those of tier preferred; unset: the agent's own"`
}

// errLost ends a run whose lease is another's, or nobody's.
var errLost = errors.New("the lease is lost")

// recordTimeout bounds the recording of a result, also when the run was ended.
const recordTimeout = 10 * time.Second

// Do does one leased item to its end and records what it came to. An error
// means that nothing could be recorded; the item comes back after its lease.
func (w Worker) Do(ctx context.Context, l work.Leased) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beat sync.WaitGroup
	beat.Go(func() { w.keep(running, l, cancel) })
	out := w.attempt(running, l)
	lost := errors.Is(context.Cause(running), errLost)
	cancel(nil)
	beat.Wait()
	if lost {
		w.Log.Info("work lost", "work_id", l.ID, "agent", l.Agent, "attempt", l.Attempts)
		return nil
	}
	recording, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	return w.record(recording, ctx, l, out)
}

// outcome is what an attempt came to.
type outcome struct {
	answer string
	err    error
	final  bool // another attempt would come to the same
}

func (w Worker) record(ctx, worked context.Context, l work.Leased, out outcome) error {
	if out.err != nil {
		w.Log.Warn("work failed", "work_id", l.ID, "agent", l.Agent, "attempt", l.Attempts, "error", out.err)
	}
	var err error
	switch {
	case out.err == nil:
		_, err = w.Queue.Done(ctx, l, out.answer)
	case worked.Err() != nil && errors.Is(worked.Err(), context.Canceled): // this process is told to stop
		err = w.Queue.Release(ctx, l)
	case out.final:
		_, err = w.Queue.Bury(ctx, l, shown(out.err))
	default:
		_, err = w.Queue.Fail(ctx, l, shown(out.err))
	}
	return err
}

// attempt does the work; a panic is a failed attempt.
func (w Worker) attempt(ctx context.Context, l work.Leased) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			w.Log.Error("panic in worker", "work_id", l.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out = outcome{err: errInternal}
		}
	}()
	as, err := w.identity(ctx, l)
	if err != nil {
		return outcome{err: err}
	}
	switch l.Kind {
	case work.KindPrompt:
		return w.prompt(ctx, l, w.Gate(as))
	case work.KindCall:
		return w.call(ctx, l, w.Gate(as))
	}
	return outcome{err: fmt.Errorf("no worker does work of kind %s", l.Kind), final: true}
}

// noScope is what work has whose asker had nothing to pass on; no tool takes it.
const noScope = "none:none"

// identity is in whose name the work is done. Nothing of it comes from a model.
func (w Worker) identity(ctx context.Context, l work.Leased) (router.Identity, error) {
	as := router.Identity{Agent: l.Agent, Credential: work.Credential(l.ID), Scopes: l.Scopes}
	if len(as.Scopes) == 0 {
		as.Scopes = []string{noScope}
	}
	var err error
	as.Tools, err = w.Narrow(ctx, l)
	return as, err
}

// keep prolongs the lease until ctx ends, and ends the work when it is lost.
func (w Worker) keep(ctx context.Context, l work.Leased, cancel context.CancelCauseFunc) {
	lease := w.Queue.Lease
	if lease <= 0 {
		lease = work.Lease
	}
	ticker := time.NewTicker(lease / 4)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		bounded, done := context.WithTimeout(ctx, lease/4)
		ours, err := w.Queue.Extend(bounded, l)
		done()
		switch {
		case err == nil && ours:
			last = time.Now()
		case err == nil || time.Since(last) > lease*3/4: // another may have it any moment
			cancel(errLost)
			return
		}
	}
}
