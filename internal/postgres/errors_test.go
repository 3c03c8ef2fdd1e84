package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

// refused is the error of connecting to a port that nothing listens on.
func refused(t *testing.T) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = pgx.Connect(t.Context(), "postgres://u:hunter2@"+l.Addr().String()+"/db?sslmode=disable")
	if err == nil {
		t.Fatal("connected to nothing")
	}
	return err
}

func said(code string) error {
	return &pgconn.PgError{Severity: "FATAL", Code: code, Message: "hunter2"}
}

// TestClassify: what a caller is told about each way a statement can fail. The
// same table says which of them mean that the database is away.
func TestClassify(t *testing.T) {
	unchanged := fault.Reason("") // the error as it was, which is shown as an internal error
	closed := pgconnClosed(t)
	for _, c := range []struct {
		name string
		err  error
		want fault.Reason
		away bool
	}{
		{"nothing", nil, unchanged, false},
		{"connection refused", refused(t), fault.Unavailable, true},
		{"too many connections", said("53300"), fault.Unavailable, true},
		{"connection closed before the statement", closed, fault.Unavailable, true},
		{"administrator's shutdown", said("57P01"), fault.OutcomeUnknown, true},
		{"crash", said("57P02"), fault.OutcomeUnknown, true},
		{"starting up", said("57P03"), fault.Unavailable, true},
		{"a pooler lost its server", said("08P01"), fault.OutcomeUnknown, true},
		{"connection failure", said("08006"), fault.OutcomeUnknown, true},
		{"end in the middle of an answer", io.ErrUnexpectedEOF, fault.OutcomeUnknown, true},
		{"end instead of an answer", io.EOF, fault.OutcomeUnknown, true},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, fault.OutcomeUnknown, true},
		{"socket closed here", net.ErrClosed, fault.OutcomeUnknown, true},

		{"no rows", pgx.ErrNoRows, unchanged, false},
		{"cancelled by the caller", context.Canceled, unchanged, false},
		{"out of time", context.DeadlineExceeded, unchanged, false},
		{"statement cancelled", said("57014"), unchanged, false},
		{"wrong password", said("28P01"), unchanged, false},
		{"no such database", said("3D000"), unchanged, false},
		{"unique violation", said("23505"), unchanged, false},
		{"disk full", said("53100"), unchanged, false},
		{"rolled back at commit", pgx.ErrTxCommitRollback, unchanged, false},
		{"some other error", errors.New("hunter2"), unchanged, false},
	} {
		for _, err := range wrappings(c.err) {
			if got := postgres.Away(orNil(err)); got != c.away {
				t.Errorf("%s: Away(%v) = %v, want %v", c.name, err, got, c.away)
			}
			got := postgres.Classify(err)
			if got := postgres.Away(orNil(got)); got != c.away {
				t.Errorf("%s: Away of it, classified, is %v, want %v", c.name, got, c.away)
			}
			f, isFault := fault.Of(got)
			switch {
			case c.want == unchanged && (isFault || !errors.Is(got, err)):
				t.Errorf("%s: Classify(%v) = %v, want it unchanged", c.name, err, got)
			case c.want == unchanged:
			case !isFault || f.Reason != c.want:
				t.Errorf("%s: Classify(%v) = %#v, want a fault %s", c.name, err, got, c.want)
			case f.RetryAfter <= 0:
				t.Errorf("%s: the fault does not say when to try again", c.name)
			}
		}
	}
}

// wrappings are an error alone and as handlers pass it on.
func wrappings(err error) []error {
	if err == nil {
		return []error{nil}
	}
	return []error{err, fmt.Errorf("store memory: %w", err), errors.Join(errors.New("other"), err)}
}

// orNil: Away is asked about errors only.
func orNil(err error) error {
	if err == nil {
		return errors.New("none")
	}
	return err
}

// pgconnClosed is the error of a statement on a connection closed before.
func pgconnClosed(t *testing.T) error {
	t.Helper()
	conn := connect(t)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "select 1")
	if err == nil {
		t.Fatal("a closed connection answered")
	}
	return err
}

// A fault that a tool made is the tool's word; and its text is the whole of
// what a caller sees, so the database's own words stay out of the others.
func TestClassifyWords(t *testing.T) {
	own := fault.New(fault.NotFound, "no memory m42")
	if got := postgres.Classify(fmt.Errorf("read: %w", errors.Join(own, said("57P01")))); !errors.Is(got, own) {
		t.Errorf("a tool's own fault became %v", got)
	}
	for _, err := range []error{said("57P01"), said("53300"), said("08006"), refused(t)} {
		f, ok := fault.Of(postgres.Classify(err))
		if !ok {
			t.Fatalf("%v is no fault", err)
		}
		encoded, _ := f.MarshalJSON()
		for _, secret := range []string{"hunter2", "127.0.0.1", "SQLSTATE", "user="} {
			if f.Message == "" || strings.Contains(string(encoded), secret) {
				t.Errorf("a caller is shown %q in %s", secret, encoded)
			}
		}
	}
}

func TestViolates(t *testing.T) {
	err := fmt.Errorf("store: %w", &pgconn.PgError{Code: "23505", ConstraintName: "memories_once"})
	if !postgres.Violates(err, "memories_once") || postgres.Violates(err, "other") || postgres.Violates(io.EOF, "memories_once") {
		t.Error("the constraint's name does not decide")
	}
}
