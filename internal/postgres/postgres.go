// Package postgres opens the one store and holds the few helpers that queries
// share. Statements live beside the tools that run them, one .sql file each.
//
// The helpers turn a lost or refused connection into a fault that says to try
// again; every other database error stays an internal error, because its
// text may quote data.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB runs statements. *pgxpool.Pool and pgx.Tx both are one, so a test can
// hand a category a transaction that it rolls back.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Config is where the database is and how it is reached.
type Config struct {
	// URL may be a reference, see package secret.
	URL string `envconfig:"DATABASE_URL" desc:"PostgreSQL to use; unset: a private cluster"`
	// Pooled says that a transaction pooler (RDS Proxy, pgbouncer) is in
	// between: then no statement outlives its transaction.
	Pooled bool `envconfig:"DATABASE_POOLED" desc:"the database is behind a transaction pooler"`
	// MaxConns bounds the connections of this process.
	MaxConns int32 `envconfig:"DATABASE_MAX_CONNS" desc:"most connections of this process; unset: 2 in a function, 16 in serve"`
}

// Timeouts of the pool. A function instance may be frozen for minutes, so a
// connection that has been idle is checked before it is used (see suspect) and
// is given up after a minute.
const (
	connectTimeout = 3 * time.Second
	maxIdle        = time.Minute
	functionConns  = 2
	maxLife        = 30 * time.Minute
)

// Open makes a pool without connecting, so that a cold start does not wait
// for the database and a database that is away is reported by the first call.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: it is not a PostgreSQL connection string") // the cause quotes the password
	}
	pc.MaxConns = cmp.Or(cfg.MaxConns, functionConns)
	pc.MinConns = 0
	pc.MaxConnIdleTime = maxIdle
	pc.MaxConnLifetime = maxLife
	pc.ShouldPing, pc.PingTimeout, pc.BeforeClose = suspect, pingTimeout, drop
	pc.ConnConfig.ConnectTimeout = connectTimeout
	pc.ConnConfig.RuntimeParams["application_name"] = "pawgate"
	if cfg.Pooled {
		// Unnamed statements in one round trip: nothing is left on the server
		// connection, so a pooler may hand it to anyone (rows LAM-01, LAM-02).
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		pc.ConnConfig.StatementCacheCapacity = 0
		pc.ConnConfig.DescriptionCacheCapacity = 0
		delete(pc.ConnConfig.RuntimeParams, "application_name") // a SET pins the connection in RDS Proxy
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// All runs a query with named arguments and collects its rows by column name.
func All[T any](ctx context.Context, db DB, sql string, args pgx.StrictNamedArgs) ([]T, error) {
	return retryOnce(func() ([]T, error) {
		rows, err := db.Query(ctx, sql, args)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByName[T])
	})
}

// One runs a query that gives one row; pgx.ErrNoRows when it gives none.
func One[T any](ctx context.Context, db DB, sql string, args pgx.StrictNamedArgs) (T, error) {
	return retryOnce(func() (T, error) {
		rows, err := db.Query(ctx, sql, args)
		if err != nil {
			var zero T
			return zero, err
		}
		return pgx.CollectOneRow(rows, pgx.RowToStructByName[T])
	})
}

// Exec runs a statement with named arguments and says how many rows it
// touched.
func Exec(ctx context.Context, db DB, sql string, args pgx.StrictNamedArgs) (int64, error) {
	return retryOnce(func() (int64, error) {
		tag, err := db.Exec(ctx, sql, args)
		return tag.RowsAffected(), err
	})
}

// InTx runs fn in a transaction: committed when fn returns nil, rolled back
// otherwise. Inside another transaction it is a savepoint.
func InTx(ctx context.Context, db DB, fn func(pgx.Tx) error) error {
	return Classify(pgx.BeginFunc(ctx, db, fn))
}

// retryOnce repeats a statement that certainly never reached the server, as
// after a connection that died while the process was frozen.
func retryOnce[T any](run func() (T, error)) (T, error) {
	v, err := run()
	if err != nil && pgconn.SafeToRetry(err) {
		v, err = run()
	}
	return v, Classify(err)
}

// First runs a query with positional arguments and reads its first row by
// column name; pgx.ErrNoRows when there is none. It is for the gate, which is
// too frequent for named arguments.
func First[T any](ctx context.Context, db DB, sql string, args ...any) (T, error) {
	return retryOnce(func() (T, error) {
		rows, err := db.Query(ctx, sql, args...)
		if err != nil {
			var zero T
			return zero, err
		}
		return pgx.CollectOneRow(rows, pgx.RowToStructByName[T])
	})
}

// Every runs a query with positional arguments and reads all its rows by
// column name. It is for the gate, like First.
func Every[T any](ctx context.Context, db DB, sql string, args ...any) ([]T, error) {
	return retryOnce(func() ([]T, error) {
		rows, err := db.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByName[T])
	})
}
