// Package migrate brings a database to the schema that the code needs.
//
// Migrations go forward only: a mistake is mended by the next one. They are
// applied by the admin function on deploy and at start on a laptop, never by
// a function that serves calls. Everything here works through a transaction
// pooler too: no statement is prepared, and the lock lasts for a transaction.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib" // the database/sql driver that goose works on
	"github.com/pressly/goose/v3"
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
	provider, db, err := open(url)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	switch pending, err := pending(ctx, provider); {
	case err != nil:
		return nil, err
	case pending == 0:
		return nil, nil // nearly always: nobody is waited for
	}
	unlock, err := acquire(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("lock migrations: %w", err)
	}
	defer unlock()
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

const (
	lockID    = 7292 // an arbitrary number, this package's own
	lockEvery = 100 * time.Millisecond
)

// acquire waits for its turn to migrate. The lock belongs to a transaction of
// a connection of its own, which even a transaction pooler keeps together; it
// goes when the process does. It polls, because a statement that waits would
// keep "create index concurrently" waiting for it.
func acquire(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	for {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		var mine bool
		err = tx.QueryRowContext(ctx, `select pg_try_advisory_xact_lock($1)`, lockID).Scan(&mine)
		if err == nil && mine {
			return func() { _ = tx.Rollback() }, nil // it wrote nothing
		}
		_ = tx.Rollback()
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockEvery):
		}
	}
}

// Pending is how many migrations are missing.
func Pending(ctx context.Context, url string) (int, error) {
	provider, db, err := open(url)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return pending(ctx, provider)
}

// pending counts what is missing, all of which must come after what is there:
// an older migration would undo what newer ones made.
func pending(ctx context.Context, provider *goose.Provider) (int, error) {
	status, err := provider.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("read migration status: %w", err)
	}
	missing := 0
	for _, s := range status { // by their numbers
		switch {
		case s.State == goose.StatePending:
			missing++
		case missing > 0:
			return 0, fmt.Errorf("the database has migration %d but not every one before it: another build of pawgate made it, "+
				"whose numbers differ; export what it holds with that build and start on an empty database (another DATABASE_URL, or PAWGATE_DATA)", s.Source.Version)
		}
	}
	return missing, nil
}

// Files are the migrations, for tests that derive a name from them.
func Files() fs.FS { return files }

func open(url string) (*goose.Provider, *sql.DB, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("open database for migrations: it is not a PostgreSQL connection string") // the cause quotes the password
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := stdlib.OpenDB(*cfg)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, db, nil
}
