package migrate_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres/migrate"
	"pawgate/internal/postgres/postgrestest"
)

// empty is a database without anything in it.
func empty(t *testing.T) string {
	t.Helper()
	at := postgrestest.CloneURL(t)
	execute(t, at, "drop schema public cascade; create schema public")
	return at
}

func execute(t *testing.T, at, sql string) {
	t.Helper()
	conn := connect(t, at)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func wantPending(t *testing.T, at string, want int) {
	t.Helper()
	if n, err := migrate.Pending(t.Context(), at); err != nil || n != want {
		t.Errorf("Pending = %d, %v, want %d", n, err, want)
	}
}

// TestUpAtOnce: processes that start together migrate once, and none waits
// longer than the work takes.
func TestUpAtOnce(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrate.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	at := empty(t)
	wantPending(t, at, len(names))
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	applied := 0
	for range 8 {
		wg.Go(func() {
			done, err := migrate.Up(t.Context(), at)
			if err != nil {
				t.Errorf("Up: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied += len(done)
		})
	}
	wg.Wait()
	if applied != len(names) {
		t.Errorf("%d migrations were applied, want each of the %d once", applied, len(names))
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	wantPending(t, at, 0)
	var locks int
	if err := connect(t, at).QueryRow(t.Context(), "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())").Scan(&locks); err != nil || locks != 0 {
		t.Errorf("%d locks are left, %v", locks, err)
	}
}

// TestUpWaits: nothing is applied while another process is at it, and waiting
// ends with the context.
func TestUpWaits(t *testing.T) {
	t.Parallel()
	at := empty(t)
	tx, err := connect(t, at).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock(7292)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := migrate.Up(ctx, at); err == nil || ctx.Err() == nil {
		t.Errorf("Up did not wait: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := migrate.Up(t.Context(), at); err != nil || len(done) == 0 {
		t.Errorf("Up after the other: %v, %v", done, err)
	}
}

// TestAnotherBuild: a database in which an early migration is missing is left
// alone, and its user is told what to do.
func TestAnotherBuild(t *testing.T) {
	t.Parallel()
	at := postgrestest.CloneURL(t)
	execute(t, at, "delete from goose_db_version where version_id = 2")
	if done, err := migrate.Up(t.Context(), at); err == nil || len(done) > 0 || !strings.Contains(err.Error(), "start on an empty database") {
		t.Errorf("Up applied %v with error %v, want nothing and what to do", done, err)
	}
	if _, err := migrate.Pending(t.Context(), at); err == nil {
		t.Error("Pending counts what cannot be applied")
	}
}

// A connection string that cannot be read may hold the password in any place.
func TestBadURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"postgres://u:hunter2@host:port/db", "host=db password='hunter2", "hunter2"} {
		if _, err := migrate.Up(t.Context(), at); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want one that quotes nothing", at, err)
		}
	}
}
