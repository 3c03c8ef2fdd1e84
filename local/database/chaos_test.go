//go:build linux || darwin

package database

import (
	"context"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Participants come, go and are killed at random, the server too, while a client writes: what it was told is kept is
// kept, and the last one out leaves nothing running.
func TestChaos(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	first, url := join(t, dir)
	execute(t, url, "CREATE TABLE kept (n bigint)")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	acknowledged := make(chan int64)
	go func() { acknowledged <- writeUntil(ctx, url) }()

	all := []*participant{first}
	pick := func() *participant {
		i := rand.IntN(len(all))
		p := all[i]
		all = slices.Delete(all, i, i+1)
		return p
	}
	for ctx.Err() == nil {
		switch choice := rand.IntN(10); {
		case choice < 4 && len(all) < 12:
			all = append(all, begin(t, dir, nil))
		case choice < 6 && len(all) > 2:
			pick().kill()
		case choice < 8 && len(all) > 2:
			check(t, pick().stdin.Close())
		case choice == 9:
			if p, ok := homeOf(dir).readPidfile(); ok {
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // It may be dead already.
			}
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
	}
	n := <-acknowledged
	for _, p := range all {
		check(t, p.stdin.Close())
	}
	for _, p := range all {
		p.finish()
	}
	eventually(t, "those who left on the way are gone", func() bool {
		st, _, err := homeOf(dir).state()
		return err == nil && st == down
	})
	c := startHere(t, dir)
	if kept := query[int64](t, c.URL(), "SELECT count(DISTINCT n) FROM kept"); kept < n || n == 0 {
		t.Errorf("%d rows are kept of the %d acknowledged", kept, n)
	}
}

// writeUntil inserts numbers from 0 on and returns how many were acknowledged.
func writeUntil(ctx context.Context, url string) int64 {
	for n := int64(0); ; {
		conn, err := pgx.Connect(ctx, url)
		for err == nil {
			if _, err = conn.Exec(ctx, "INSERT INTO kept VALUES ($1)", n); err == nil {
				n++
			}
		}
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		if ctx.Err() != nil {
			return n
		}
		_ = sleep(ctx, 2*poll)
	}
}
