package tool

import (
	"context"
	"time"
)

// Progress is how far a call is that takes long. Done must grow from one report
// to the next; Total is 0 when nobody knows it.
type Progress struct {
	Done    float64 `json:"progress"`
	Total   float64 `json:"total,omitzero"`
	Message string  `json:"message,omitzero"`
}

type progressKey struct{}

// WithProgress is a context whose call tells its progress. report is called
// from one goroutine at a time per handler, and must not block for long.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Listener is who wants to hear of the progress of a call; nil when nobody does.
func Listener(ctx context.Context) func(Progress) {
	report, _ := ctx.Value(progressKey{}).(func(Progress))
	return report
}

// Reporting tells the progress that read gives, at once and every so often,
// until the function that it returns is called. Where nobody listens, read is
// never called.
func Reporting(ctx context.Context, every time.Duration, read func() Progress) (stop func()) {
	report := Listener(ctx)
	if report == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			report(read())
			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
