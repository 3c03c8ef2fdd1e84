//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	poll = 10 * time.Millisecond
	// stoppingPatience is how long a server may be stopping before it is told to drop its clients: a plain SIGTERM, as
	// from a service manager, makes it wait for them for ever.
	stoppingPatience = 3 * time.Second
	// After these a stop becomes less polite: SIGINT drops the clients, SIGQUIT skips the checkpoint (the next start
	// recovers from the log), SIGKILL is for a server that hangs.
	quitAfter = 15 * time.Second
	killAfter = 20 * time.Second
)

// server is one cluster's server as a participant sees it. Every method but state is called under lock.control.
type server struct {
	home home
	site site
	log  *slog.Logger
	pass secret
	at   endpoint // where it was last seen listening; zero before
}

// up makes the server run with the database in it, and begins again when it is killed on the way.
func (s *server) up(ctx context.Context) (err error) {
	for range 5 {
		if err = s.run(ctx); err == nil {
			err = s.ensureDatabase(ctx)
		}
		if err == nil || !died(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// died reports whether an error is that of a server, or initdb, that went away, rather than one that comes again.
func died(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return strings.HasPrefix(said.Code, "57P") // operator_intervention: shut down, crashed, not yet up
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode() == -1 // by a signal
	}
	var connecting *pgconn.ConnectError
	var broken *net.OpError
	return errors.As(err, &connecting) || errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF)
}

// run makes the server accept connections, whatever state it is in.
func (s *server) run(ctx context.Context) error {
	if err := s.home.loadSecret(&s.pass); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += poll {
		st, p, err := s.home.state()
		if err != nil {
			return err
		}
		switch st {
		case down:
			return s.start(ctx)
		case ready, headless:
			if s.answers(ctx, p.at) {
				s.at = p.at
				return nil
			}
			if st == headless {
				if err := s.home.killHeadless(); err != nil {
					return err
				}
			}
		case stopping:
			if waited >= stoppingPatience {
				s.home.signal(politeness(waited))
			}
		}
		if err := sleep(ctx, poll); err != nil {
			return fmt.Errorf("wait for PostgreSQL: %w%s", err, s.home.tail())
		}
	}
}

// answers reports whether a server that knows our password, or at least speaks, is there. A server that starts or
// stops says 57P03 (cannot_connect_now).
func (s *server) answers(ctx context.Context, at endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, at.url(appRole, s.pass.password(appRole), dbName))
	if err == nil {
		_ = conn.Close(ctx)
		return true
	}
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code != "57P03"
}

// stop ends the server and waits until its last process is gone.
func (s *server) stop(ctx context.Context) error {
	asked := syscall.Signal(0)
	for waited := time.Duration(0); ; waited += poll {
		st, p, err := s.home.state()
		switch {
		case err != nil || st == down:
			return err
		case st == headless && s.answers(ctx, p.at):
			s.log.Warn("the database server runs in another container and cannot be stopped from here", "dir", s.home.dir)
			return nil
		case st == headless:
			if err := s.home.killHeadless(); err != nil {
				return err
			}
		}
		if want := politeness(waited); want != asked && s.home.signal(want) {
			asked = want
		}
		if err := sleep(ctx, poll); err != nil {
			return fmt.Errorf("wait for PostgreSQL to stop: %w", err)
		}
	}
}

func politeness(waited time.Duration) syscall.Signal {
	switch {
	case waited >= killAfter:
		return syscall.SIGKILL
	case waited >= quitAfter:
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}
