//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
				s.home.signal(syscall.SIGINT)
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

// start makes the data if need be and starts the server; no process of it lives.
func (s *server) start(ctx context.Context) error {
	if err := s.home.prepare(); err != nil {
		return err
	}
	pg, err := findBinaries(ctx, s.home, s.site, s.log)
	if err != nil {
		return err
	}
	if err := s.ensureData(ctx, pg); err != nil {
		return err
	}
	if err := s.home.clearStale(); err != nil {
		return err
	}
	s.home.pruneLogs()
	if err := s.listen(ctx, pg); err != nil {
		return err
	}
	s.log.Debug("database server started", "dir", s.home.dir, "postgres", pg.major)
	return nil
}

// listen launches the server at its socket, or at a port, once more if another program took that in between.
func (s *server) listen(ctx context.Context, pg binaries) (err error) {
	at := s.home.endpoint()
	for range 3 {
		if at.socket == "" {
			if at.port, err = s.home.choosePort(ctx, s.at.port); err != nil {
				return err
			}
		}
		if err = s.launch(ctx, pg, at); err == nil || at.socket != "" || portFree(at.port) {
			break
		}
	}
	if err != nil {
		return err
	}
	if s.at.port != 0 && s.at.port != at.port {
		s.log.Warn("the database's port was taken while it was down; connection pools made before will not find it", "port", at.port)
	}
	s.at = at
	return nil
}

// launch starts the program and waits until it accepts connections or ends.
func (s *server) launch(ctx context.Context, pg binaries, at endpoint) error {
	guard, err := s.home.lockServer(ctx)
	if err != nil {
		return err
	}
	defer guard.close() // The server keeps the lock through its own copy of the descriptor.
	said, err := os.OpenFile(s.home.path("start.log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer said.Close()
	args := append([]string{"-D", s.home.data()}, s.home.settings(at)...)
	if s.site.hasty {
		args = append(args, "-c", "fsync=off")
	}
	// Not ctx: the server outlives this call and this process.
	cmd := s.home.who.command(context.WithoutCancel(ctx), pg.program("postgres"), args...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.ExtraFiles = []*os.File{guard.file}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // For as long as both live: a dead child nobody waits for stays listed.
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("start PostgreSQL: it ended at once: %w%s", err, s.home.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL: %w%s", context.Cause(ctx), s.home.tail())
		case <-time.After(poll):
		}
		if p, ok := s.home.readPidfile(); ok && p.pid == cmd.Process.Pid && p.status == "ready" && s.answers(ctx, at) {
			return nil
		}
	}
}

// lockServer takes the lock that a server or initdb will inherit. Only participants that look at it for an instant
// can be in the way.
func (h home) lockServer(ctx context.Context) (lock, error) {
	l, err := openLock(h.path("lock.server"))
	if err != nil {
		return lock{}, err
	}
	if err := l.wait(ctx, syscall.LOCK_EX); err != nil {
		l.close()
		return lock{}, fmt.Errorf("lock server: %w", err)
	}
	return l, nil
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
