package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// TestLostAnswer: the server did it and nobody was told. Nothing is sent
// again, and the caller hears that the outcome is not known.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprintf("pooled=%v", pooled), func(t *testing.T) {
			t.Parallel()
			url := notes(t)
			w := newWire(t, url)
			db := postgrestest.Pool(t, postgres.Config{URL: w.URL, Pooled: pooled, MaxConns: 1})
			if _, err := postgres.Exec(t.Context(), db, insertNote, text("first")); err != nil {
				t.Fatal(err)
			}
			w.loseAnswer.Store(true)
			_, err := postgres.Exec(t.Context(), db, insertNote, text("unheard"))
			wantReason(t, err, fault.OutcomeUnknown)
			if n := count(t, url, "unheard"); n != 1 {
				t.Errorf("the write ran %d times", n)
			}
			if _, err := postgres.Exec(t.Context(), db, insertNote, text("next")); err != nil {
				t.Errorf("the next write: %v", err)
			}
		})
	}
}

// A statement that certainly was not sent is tried once more, and only once.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := &counted{DB: conn}
	for name, run := range map[string]func() error{
		"Exec":  func() error { _, err := postgres.Exec(t.Context(), db, "select @text::text", text("x")); return err },
		"All":   func() error { _, err := postgres.All[number](t.Context(), db, "select 1 as n", nil); return err },
		"One":   func() error { _, err := postgres.One[number](t.Context(), db, "select 1 as n", nil); return err },
		"First": func() error { _, err := postgres.First[number](t.Context(), db, "select 1 as n"); return err },
	} {
		db.n = 0
		wantReason(t, run(), fault.Unavailable)
		if db.n != 2 {
			t.Errorf("%s was tried %d times, want 2", name, db.n)
		}
	}
}

// counted counts statements.
type counted struct {
	postgres.DB
	n int
}

func (c *counted) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.n++
	return c.DB.Exec(ctx, sql, args...)
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.n++
	return c.DB.Query(ctx, sql, args...)
}
