package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/fault"
)

// retryAfter is how long a restarting server usually needs, as a hint.
const retryAfter = 2 * time.Second

// Classify turns the failures of a database that is away into faults that say
// so. A failure before the statement was sent is safe to repeat; after that
// nobody knows whether it ran, and the fault says that instead.
func Classify(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, already := fault.Of(err); already {
		return err
	}
	switch {
	case !Away(err):
		return err
	case neverSent(err):
		return fault.Retry(fault.Unavailable, retryAfter, "the database is not reachable; nothing was changed, try again in a few seconds")
	}
	return fault.Retry(fault.OutcomeUnknown, retryAfter,
		"the database went away during the call; a read can be repeated, for a change look first whether it was made")
}

// Away reports whether an error means that the database cannot be reached, is
// full, or is going down or coming up (PostgreSQL's error classes 08 and 57P,
// and 53300), also after Classify.
func Away(err error) bool {
	if f, classified := fault.Of(err); classified {
		return f.Reason == fault.Unavailable || f.Reason == fault.OutcomeUnknown
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "conn closed")
}

func neverSent(err error) bool {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	// too_many_connections and cannot_connect_now refuse a session, before any
	// statement of it.
	refused := errors.As(err, &pg) && (pg.Code == "53300" || pg.Code == "57P03")
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) || refused
}

// Violates reports whether an error is the violation of a named constraint.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// BadData reports whether the database refused a statement for the data in it
// (PostgreSQL's error class 22), which another statement may not share.
func BadData(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22")
}
