package web

import (
	"context"
	"fmt"
	"runtime/debug"
)

// inTime runs work that cannot be interrupted, such as taking a hostile page
// apart, without keeping the caller beyond its deadline. What the work writes
// must not be read when it did not finish.
func inTime(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		done <- work()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
