// Package postgrestest gives tests a real, migrated database.
//
// TEST_DATABASE_URL names the server to use. Without it the private cluster
// of package local/database is started for the test process, so that
// "go test ./..." needs nothing prepared.
package postgrestest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/migrate"
	"pawgate/local/database"
)

// New is a transaction on a migrated database, rolled back when the test
// ends. It is one connection: use Clone where calls run side by side.
func New(t testing.TB) pgx.Tx {
	t.Helper()
	source := must(t, template)
	conn, err := pgx.Connect(t.Context(), withDatabase(source, shared(databaseName(source))))
	if err != nil {
		t.Fatalf("connect to test database: %v", err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	t.Cleanup(func() {
		_ = tx.Rollback(context.Background())
		_ = conn.Close(context.Background())
	})
	return tx
}

// Clone is a database of the test's own, migrated and empty, dropped when the
// test ends.
func Clone(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, postgres.Config{URL: CloneURL(t), MaxConns: 16})
}

// Pool opens a pool that closes when the test ends.
func Pool(t testing.TB, cfg postgres.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// CloneURL is Clone for a test that opens the database itself.
func CloneURL(t testing.TB) string {
	t.Helper()
	admin := must(t, server)
	name := "pawgate_clone_" + strings.ToLower(rand.Text()[:12])
	source := databaseName(must(t, template))
	execute(t, admin, fmt.Sprintf(`create database %q template %q`, name, source))
	t.Cleanup(func() { drop(t, admin, name) })
	return withDatabase(admin, name)
}

// drop drops a database with whatever is connected to it. A server's own
// vacuum worker in it refuses that to all but a superuser, for a moment.
func drop(t testing.TB, admin, name string) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := tryExecute(admin, fmt.Sprintf(`drop database if exists %q with (force)`, name))
		var said *pgconn.PgError
		if errors.As(err, &said) && said.Code == "42501" && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Errorf("drop test database: %v", err)
		}
		return
	}
}

// server is the server to use, started once per process.
var server = sync.OnceValues(func() (string, error) {
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		return url, nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("pawgate-test-%d", os.Getuid()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Not closed: the lock that counts participants goes with the process.
	cluster, err := database.Start(ctx, database.Config{Dir: dir})
	if err != nil {
		return "", fmt.Errorf("start test database: %w", err)
	}
	return cluster.URL(), nil
})

// template is a migrated database named after the migrations' content, so
// that it is made once and remade when a migration changes. Nobody connects to
// it.
var template = sync.OnceValues(func() (string, error) {
	admin, err := server()
	if err != nil {
		return "", err
	}
	return makeTemplate(admin)
})

// must gives the URL or ends the test.
func must(t testing.TB, url func() (string, error)) string {
	t.Helper()
	u, err := url()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	return u
}

func makeTemplate(admin string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	name := "pawgate_base_" + fingerprint()
	// Test processes start together; one of them makes the database.
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(7291)`); err != nil {
		return "", err
	}
	var exists bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists); err != nil {
		return "", err
	}
	url := withDatabase(admin, name)
	if exists {
		return url, nil
	}
	// What is cloned must have nobody connected to it, so the transactions of
	// New run in a first clone, and the template is closed.
	draft := name + "_draft"
	for _, sql := range []string{`drop database if exists %q with (force)`, `create database %q`} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, draft)); err != nil {
			return "", err
		}
	}
	if _, err := migrate.Up(ctx, withDatabase(admin, draft)); err != nil {
		return "", err
	}
	for _, sql := range []string{
		fmt.Sprintf(`drop database if exists %q with (force)`, shared(name)),
		fmt.Sprintf(`create database %q template %q`, shared(name), draft),
		fmt.Sprintf(`alter database %q allow_connections false`, draft),
		fmt.Sprintf(`alter database %q rename to %q`, draft, name),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	return url, nil
}

// shared is the database beside a template that transactions run in.
func shared(template string) string { return template + "_shared" }

func fingerprint() string {
	sum := sha256.New()
	_ = fs.WalkDir(migrate.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrate.Files(), path)
		sum.Write(content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

func execute(t testing.TB, url, sql string) {
	t.Helper()
	if err := tryExecute(url, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func tryExecute(url, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // pgx has connected with it
	}
	u.Path = "/" + name
	return u.String()
}

func databaseName(server string) string {
	u, _ := url.Parse(server)
	return strings.TrimPrefix(u.Path, "/")
}
