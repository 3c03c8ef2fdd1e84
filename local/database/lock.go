//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock is one open of a lock file. Two opens exclude each other even within one process (flock(2)), so a process may
// take part several times.
type lock struct{ file *os.File }

func openLock(path string) (lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return lock{}, fmt.Errorf("open lock: %w", err)
	}
	return lock{f}, nil
}

// try takes the lock, syscall.LOCK_SH or LOCK_EX, and reports whether it could be had at once.
func (l lock) try(how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(l.file.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
	}
}

// wait polls, because a blocking flock cannot be cancelled.
func (l lock) wait(ctx context.Context, how int) error {
	for pause := 5 * time.Millisecond; ; pause = min(pause*2, 40*time.Millisecond) {
		if ok, err := l.try(how); ok || err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// unlock cannot fail on an open file.
func (l lock) unlock() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }

// close also releases the lock, unless a child inherited the descriptor.
func (l lock) close() { _ = l.file.Close() }

// sleep waits for d, or returns why ctx ended before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
