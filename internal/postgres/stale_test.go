package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// TestSleptConnections: an instance was frozen, and meanwhile its connections
// ended. The next call meets that, succeeds all the same, and writes once.
func TestSleptConnections(t *testing.T) {
	t.Parallel()
	const idle = 1200 * time.Millisecond // what has been idle for a second is pinged
	for _, c := range []struct {
		name  string
		cut   func(*testing.T, *wire, string)
		wait  time.Duration
		bound time.Duration
	}{
		{"ended by the server just now", func(t *testing.T, _ *wire, url string) { terminate(t, url) }, 0, time.Second},
		{"ended by the server a while ago", func(t *testing.T, _ *wire, url string) { terminate(t, url) }, idle, time.Second},
		{"closed on the way just now", func(_ *testing.T, w *wire, _ string) { w.cut() }, 0, time.Second},
		{"closed on the way a while ago", func(_ *testing.T, w *wire, _ string) { w.cut() }, idle, time.Second},
		{"forgotten by a firewall", func(_ *testing.T, w *wire, _ string) { w.deafen() }, idle, 4 * time.Second},
	} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("LAM-03 %s pooled=%v", c.name, pooled), func(t *testing.T) {
				t.Parallel()
				url := notes(t)
				w := newWire(t, url)
				db := postgrestest.Pool(t, postgres.Config{URL: w.URL, Pooled: pooled})
				if _, err := postgres.Exec(t.Context(), db, insertNote, text("before")); err != nil {
					t.Fatal(err)
				}
				fill(t, db)
				c.cut(t, w, url)
				time.Sleep(c.wait)
				began := time.Now()
				if _, err := postgres.Exec(t.Context(), db, insertNote, text("after")); err != nil {
					t.Errorf("the next write: %v", err)
				}
				if took := time.Since(began); took > c.bound {
					t.Errorf("the next write took %s", took)
				}
				if n := count(t, url, "after"); n != 1 {
					t.Errorf("the write ran %d times", n)
				}
			})
		}
	}
}

// TestOutOfTime: a statement that runs out of time gives its place back soon,
// also when the server's end has gone deaf.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf=%v", deaf), func(t *testing.T) {
			t.Parallel()
			w := newWire(t, notes(t))
			db := postgrestest.Pool(t, postgres.Config{URL: w.URL, MaxConns: 1})
			fill(t, db)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if deaf {
				w.deafen()
			}
			_, err := postgres.Exec(ctx, db, "select pg_sleep(60)", nil)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the slow statement: %v", err)
			}
			began := time.Now()
			if _, err := postgres.Exec(t.Context(), db, insertNote, text("next")); err != nil {
				t.Errorf("the next statement: %v", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the next statement waited %s for the place", took)
			}
		})
	}
}
