package router

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed stopped.sql
var stoppedSQL string

// watchEvery is how often a call that takes long looks whether a stop covers
// its agent by now.
const watchEvery = 500 * time.Millisecond

var errStopped = errors.New("an emergency stop was set during the call")

// watch ends the context of a call when an emergency stop covers its agent. A
// short call is over before the first look and pays nothing.
func (r *Router) watch(ctx context.Context, c *call) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.entry.Exempt {
		return ctx, func() { cancel(nil) }
	}
	go func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// A database that does not answer stops no call; the next one is
			// refused anyway.
			row, err := postgres.First[struct{ Stopped bool }](ctx, r.DB, stoppedSQL, c.snapshot.Agent.ID)
			if err == nil && row.Stopped {
				cancel(errStopped)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// cutOff is the outcome of a call that a stop ended.
func cutOff(c *call) tool.Outcome {
	return tool.Outcome{Fault: fault.New(fault.Stopped, "an emergency stop ended %s; %s", c.entry.Name, mayHaveRun(c.entry))}
}
