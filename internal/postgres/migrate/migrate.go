// Package migrate brings a database to the schema that the code needs.
//
// Migrations go forward only: a mistake is mended by the next one. They are
// applied by the admin function on deploy and at start on a laptop, never by
// a function that serves calls. The lock is a session lock, so the connection
// must not go through a transaction pooler.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver that goose works on
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Applied is one migration that ran.
type Applied struct {
	Version int64  `json:"version"`
	File    string `json:"file"`
}

// Up applies what is missing and says what it applied. Any number of
// processes may call it at once: one works, the others wait.
func Up(ctx context.Context, url string) ([]Applied, error) {
	provider, closeDB, err := open(url)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("apply migrations: %w", err)
	}
	applied := make([]Applied, len(results))
	for i, r := range results {
		applied[i] = Applied{Version: r.Source.Version, File: r.Source.Path}
	}
	return applied, nil
}

// Pending is how many migrations are missing.
func Pending(ctx context.Context, url string) (int, error) {
	provider, closeDB, err := open(url)
	if err != nil {
		return 0, err
	}
	defer closeDB()
	status, err := provider.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("read migration status: %w", err)
	}
	pending := 0
	for _, s := range status {
		if s.State == goose.StatePending {
			pending++
		}
	}
	return pending, nil
}

// Files are the migrations, for tests that derive a name from them.
func Files() fs.FS { return files }

func open(url string) (*goose.Provider, func(), error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, nil, fmt.Errorf("open database for migrations: it is not a PostgreSQL connection string")
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, nil, fmt.Errorf("make migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, func() { db.Close() }, nil
}
