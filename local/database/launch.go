//go:build linux || darwin

package database

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

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
