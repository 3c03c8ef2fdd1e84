package router

import (
	"context"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Backend carries a call that passed the gate to its category. It always comes
// to an outcome: what goes wrong on the way is a fault that says whether the
// call may have run. A backend never sends a call twice.
type Backend interface {
	Call(ctx context.Context, who caller.Caller, entry *catalog.Entry, arguments []byte) tool.Outcome
}

// InProcess is a category in the same process. No assertion is needed where
// no boundary is crossed.
type InProcess struct{ Table tool.Table }

// Call runs the tool and does not wait for one that ignores its deadline.
func (b InProcess) Call(ctx context.Context, who caller.Caller, entry *catalog.Entry, arguments []byte) tool.Outcome {
	done := make(chan tool.Outcome, 1)
	go func() { done <- b.Table.Call(ctx, who, entry.Name, arguments) }()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	select { // most handlers notice and say it better
	case out := <-done:
		return out
	case <-time.After(grace):
		return lost(ctx, entry)
	}
}

// grace is how long after its deadline a call may still come back.
const grace = 50 * time.Millisecond

// lost is the outcome of a call that was sent but whose answer did not come:
// for a read it is enough to say so, after a write nobody knows.
func lost(ctx context.Context, entry *catalog.Entry) tool.Outcome {
	if ctx.Err() == context.DeadlineExceeded {
		return tool.Outcome{Fault: fault.New(fault.DeadlineExceeded, "%s did not finish in time; %s", entry.Name, mayHaveRun(entry))}
	}
	return tool.Outcome{Fault: fault.New(fault.Cancelled, "%s was cancelled; %s", entry.Name, mayHaveRun(entry))}
}

// outcomeUnknown is the outcome of a call whose answer was lost on the way.
func outcomeUnknown(entry *catalog.Entry) tool.Outcome {
	if entry.Hints.ReadOnly {
		return tool.Outcome{Fault: fault.Retry(fault.Unavailable, time.Second, "the answer of %s was lost; try again", entry.Name)}
	}
	return tool.Outcome{Fault: fault.New(fault.OutcomeUnknown, "the answer of %s was lost; %s", entry.Name, mayHaveRun(entry))}
}

func mayHaveRun(entry *catalog.Entry) string {
	if entry.Hints.ReadOnly {
		return "it changes nothing, so it can be tried again"
	}
	return "it may still have been done, so look before you repeat it"
}
