//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// ensureDatabase makes the application's role and database unless they are there. It is not part of making the data,
// so that a start which was killed half-way through is completed by the next.
func (s *server) ensureDatabase(ctx context.Context) error {
	conn, err := pgconn.Connect(ctx, s.url())
	if err == nil {
		return conn.Close(ctx)
	}
	if !missing(err) {
		return fmt.Errorf("connect to database: %w", err)
	}
	admin, err := pgconn.Connect(ctx, s.at.url(adminRole, s.pass.password(adminRole), "postgres"))
	if err != nil {
		return fmt.Errorf("connect to new cluster: %w", err)
	}
	defer func() { _ = admin.Close(ctx) }()
	return s.createDatabase(ctx, admin)
}

// missing reports whether the role (which a server does not tell from a wrong password) or the database is not there.
func missing(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "28P01" || said.Code == "3D000")
}

// createDatabase gives the role no more than its own database and the right to make others, as tests do; extensions
// marked trusted, pg_trgm among them, need no superuser.
func (s *server) createDatabase(ctx context.Context, admin *pgconn.PgConn) error {
	verb := "CREATE"
	if exists, err := some(ctx, admin, "SELECT FROM pg_roles WHERE rolname = '"+appRole+"'"); err != nil {
		return err
	} else if exists {
		verb = "ALTER"
	}
	// Statements of this kind take no parameters; the password is hexadecimal.
	if err := do(ctx, admin, fmt.Sprintf("%s ROLE %s LOGIN CREATEDB PASSWORD '%s'", verb, appRole, s.pass.password(appRole))); err != nil {
		return err
	}
	exists, err := some(ctx, admin, "SELECT FROM pg_database WHERE datname = '"+dbName+"'")
	if err != nil {
		return err
	}
	if !exists {
		if err := do(ctx, admin, "CREATE DATABASE "+dbName+" OWNER "+appRole); err != nil {
			return err
		}
	}
	if trgm, err := some(ctx, admin, "SELECT FROM pg_available_extensions WHERE name = 'pg_trgm'"); err == nil && !trgm {
		s.log.Warn("this PostgreSQL lacks pg_trgm: install its contrib package")
	}
	return nil
}

func do(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	return nil
}

func some(ctx context.Context, conn *pgconn.PgConn, sql string) (bool, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return false, fmt.Errorf("look into new cluster: %w", err)
	}
	return len(results) == 1 && len(results[0].Rows) > 0, nil
}
