package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

const (
	insertNote = "insert into notes (text) values (@text)"
	countNotes = "select count(*)::int as n from notes where text = $1"
)

// notes is a database of the test's own with one table to write to.
func notes(t *testing.T) string {
	t.Helper()
	url := postgrestest.CloneURL(t)
	execute(t, url, "create table notes (n bigint generated always as identity primary key, text text not null)")
	return url
}

func execute(t *testing.T, url, sql string, args ...any) pgconn.CommandTag {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tag, err := conn.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag
}

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgrestest.CloneURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func text(s string) pgx.StrictNamedArgs { return pgx.StrictNamedArgs{"text": s} }

// count is how often a note was written, asked past whatever is broken.
func count(t *testing.T, url, note string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), countNotes, note).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantReason checks that an error is a fault with a reason.
func wantReason(t *testing.T, err error, want fault.Reason) {
	t.Helper()
	if f, ok := fault.Of(err); !ok || f.Reason != want {
		t.Errorf("error %v, want a fault %s", err, want)
	}
}

// A connection string that cannot be read may hold the password in any place.
func TestOpenBadURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:hunter2@host:port/db",
		"postgres://u:hunter2%zz@host/db",
		"postgres://u:hunter2@host/db?sslmode=maybe",
		"postgres://u:hunter2@host/db?sslmode=verify-full&sslrootcert=/none/hunter2.pem",
		"postgres://u:hunter2@host/db?connect_timeout=hunter2",
		"postgres://u:hunter2@host/db?pool_max_conns=hunter2",
		"host=db password='hunter2",
		"hunter2",
		"mysql://u:hunter2@host/db",
	} {
		pool, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err == nil {
			pool.Close()
			t.Errorf("%s was taken", url)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "DATABASE_URL") {
			t.Errorf("%s: error %q, want one that names DATABASE_URL and quotes nothing", url, err)
		}
	}
}

// A cold start does not wait for the database.
func TestOpenDoesNotConnect(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: silent(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("Open took %s", took)
	}
	if n := pool.Config().MaxConns; n != 2 {
		t.Errorf("a function may hold %d connections, want 2", n)
	}
}

// A server that accepts and is silent, as behind a broken load balancer, costs
// a call a few seconds and not its whole time.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"?sslmode=disable", "" /* prefer: two tries */} {
		t.Run("sslmode"+options, func(t *testing.T) {
			t.Parallel()
			pool := postgrestest.Pool(t, postgres.Config{URL: silent(t, options)})
			began := time.Now()
			_, err := postgres.Exec(t.Context(), pool, "select @text::text", text("x"))
			wantReason(t, err, fault.Unavailable)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s to give up", took)
			}
		})
	}
}

// A server that is full says so at once.
func TestLAM04ServerFull(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := postgres.Exec(t.Context(), postgrestest.Pool(t, postgres.Config{URL: full(t)}), "select @text::text", text("x"))
	wantReason(t, err, fault.Unavailable)
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s to be refused", took)
	}
}

type number struct{ N int }

// TestHelpers: the four ways to ask.
func TestHelpers(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprintf("pooled=%v", pooled), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			db := postgrestest.Pool(t, postgres.Config{URL: notes(t), Pooled: pooled})
			if n, err := postgres.Exec(ctx, db, "insert into notes (text) select unnest(@texts::text[])",
				pgx.StrictNamedArgs{"texts": []string{"備份", "b"}}); err != nil || n != 2 {
				t.Fatalf("Exec = %d, %v", n, err)
			}
			all, err := postgres.All[number](ctx, db, "select n::int from notes order by n", nil)
			if diff := cmp.Diff([]number{{1}, {2}}, all); err != nil || diff != "" {
				t.Errorf("All: %v %s", err, diff)
			}
			one, err := postgres.One[number](ctx, db, "select n::int from notes where text = @text", text("備份"))
			if err != nil || one.N != 1 {
				t.Errorf("One = %v, %v", one, err)
			}
			if _, err := postgres.One[number](ctx, db, "select n::int from notes where text = @text", text("none")); !errors.Is(err, pgx.ErrNoRows) {
				t.Errorf("One of nothing: %v", err)
			}
			first, err := postgres.First[number](ctx, db, "select n::int from notes where text = any ($1) order by n desc", []string{"備份", "b"})
			if err != nil || first.N != 2 {
				t.Errorf("First = %v, %v", first, err)
			}
			if _, err := postgres.First[number](ctx, db, "select n::int from notes where false"); !errors.Is(err, pgx.ErrNoRows) {
				t.Errorf("First of nothing: %v", err)
			}
			if _, err := postgres.Exec(ctx, db, insertNote, pgx.StrictNamedArgs{"txt": "x"}); err == nil {
				t.Error("a misspelt argument was taken")
			}
		})
	}
}

// TestPooled: rows LAM-01 and LAM-02: behind a transaction pooler nothing outlives its
// transaction on the server's side, so nothing pins a connection and nothing
// of one instance meets another's. Without the setting statements are kept,
// which shows that the test can tell.
func TestPooled(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{true, false} {
		t.Run(fmt.Sprintf("LAM-01 LAM-02 pooled=%v", pooled), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			db := postgrestest.Pool(t, postgres.Config{URL: notes(t), Pooled: pooled, MaxConns: 1})
			for range 3 {
				useEveryHelper(t, db)
			}
			left, err := postgres.All[struct{ Name string }](ctx, db, "select name from pg_prepared_statements where statement not like '%pg_prepared%'", nil)
			if err != nil {
				t.Fatal(err)
			}
			if pooled != (len(left) == 0) {
				t.Errorf("prepared statements on the connection: %v", left)
			}
			config := db.Config().ConnConfig
			if pooled && len(config.RuntimeParams) > 0 {
				t.Errorf("a pooler must set %v for every client, which pins connections", config.RuntimeParams)
			}
			if mode := config.DefaultQueryExecMode; pooled && mode != pgx.QueryExecModeExec {
				t.Errorf("statements run in mode %s", mode)
			}
		})
	}
}

func useEveryHelper(t *testing.T, db postgres.DB) {
	t.Helper()
	ctx := t.Context()
	if _, err := postgres.Exec(ctx, db, insertNote, text("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.All[number](ctx, db, "select n::int from notes", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.First[number](ctx, db, countNotes, "x"); err != nil {
		t.Fatal(err)
	}
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		_, err := postgres.Exec(ctx, tx, insertNote, text("y"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInTx: all or nothing, also inside another transaction.
func TestInTx(t *testing.T) {
	t.Parallel()
	url := notes(t)
	db := postgrestest.Pool(t, postgres.Config{URL: url})
	ctx := t.Context()
	broken := errors.New("broken")
	write := func(tx pgx.Tx, note string, then error) error {
		if _, err := postgres.Exec(ctx, tx, insertNote, text(note)); err != nil {
			return err
		}
		return then
	}
	if err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { return write(tx, "kept", nil) }); err != nil {
		t.Errorf("commit: %v", err)
	}
	if err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { return write(tx, "gone", broken) }); !errors.Is(err, broken) {
		t.Errorf("rollback: %v", err)
	}
	own := fault.New(fault.Conflict, "taken")
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if err := postgres.InTx(ctx, tx, func(inner pgx.Tx) error { return write(inner, "savepoint", own) }); !errors.Is(err, own) {
			t.Errorf("a fault came out of the savepoint as %v", err)
		}
		return write(tx, "outer", nil)
	})
	if err != nil {
		t.Errorf("outer transaction: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = postgres.InTx(ctx, db, func(tx pgx.Tx) error { _ = write(tx, "panic", nil); panic("in fn") })
	}()
	for note, want := range map[string]int{"kept": 1, "gone": 0, "savepoint": 0, "outer": 1, "panic": 0} {
		if n := count(t, url, note); n != want {
			t.Errorf("%s is there %d times, want %d", note, n, want)
		}
	}
}

// TestCommitFails: what fails at the last moment is no success.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	url := notes(t)
	execute(t, url, "alter table notes add constraint once unique (text) deferrable initially deferred")
	w := newWire(t, url)
	db := postgrestest.Pool(t, postgres.Config{URL: w.URL, Pooled: true})
	ctx := t.Context()
	write := func(tx pgx.Tx, note string) {
		t.Helper()
		if _, err := postgres.Exec(ctx, tx, insertNote, text(note)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a constraint checked at commit", func(t *testing.T) {
		err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { write(tx, "twice"); write(tx, "twice"); return nil })
		if !postgres.Violates(err, "once") {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("an error that fn kept to itself", func(t *testing.T) {
		err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { write(tx, "x"); _, _ = tx.Exec(ctx, "select 1/0"); return nil })
		if !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("the server ends the session before commit", func(t *testing.T) {
		err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { write(tx, "ended"); terminate(t, url); return nil })
		if _, ok := fault.Of(err); !ok {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("the answer to commit is lost", func(t *testing.T) {
		err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { write(tx, "unheard"); w.loseAnswer.Store(true); return nil })
		wantReason(t, err, fault.OutcomeUnknown)
	})
	for note, want := range map[string]int{"twice": 0, "x": 0, "ended": 0, "unheard": 1} {
		if n := count(t, url, note); n != want {
			t.Errorf("%s is there %d times, want %d", note, n, want)
		}
	}
}

// terminate ends the sessions of pools on a database, as an administrator or
// a failover does, and waits until they are gone.
func terminate(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
	if _, err := conn.Exec(t.Context(), "select pg_terminate_backend(pid) "+others); err != nil {
		t.Fatal(err)
	}
	for {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) "+others).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// fill opens every connection of a pool and leaves them idle.
func fill(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	var held []*pgxpool.Conn
	for range db.Config().MaxConns {
		c, err := db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Release()
	}
}
