//go:build linux || darwin

package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pidfile is what the server says of itself in postmaster.pid (PostgreSQL source, src/include/utils/pidfile.h: line 1
// the process, 4 the port, 5 the socket folder, 8 the status).
type pidfile struct {
	pid    int
	at     endpoint
	status string // starting, ready, stopping; empty until the server says
}

// readPidfile reports false when there is none that can be understood, as while the server is just writing it.
func (h home) readPidfile() (pidfile, bool) {
	text, err := os.ReadFile(filepath.Join(h.data(), "postmaster.pid"))
	if err != nil {
		return pidfile{}, false
	}
	p, ok := parsePidfile(string(text))
	if p.at.socket != "" {
		p.at.socket = h.path("run") // The same folder, by the name that it has here: a container may know it by another.
	}
	return p, ok
}

func parsePidfile(text string) (pidfile, bool) {
	lines := strings.Split(text, "\n")
	line := func(n int) string {
		if n > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, err := strconv.Atoi(line(1))
	if err != nil || pid <= 1 {
		return pidfile{}, false
	}
	port, _ := strconv.Atoi(line(4)) // Absent while starting.
	return pidfile{pid: pid, at: endpoint{socket: line(5), port: port}, status: line(8)}, true
}

// state is how the server is, as far as files and locks tell without connecting.
type state int

const (
	down     state = iota // no process of it lives
	starting              // or an initdb that its starter did not outlive
	ready
	stopping
	headless // processes live, but not the first one, or it is in another PID namespace
)

// state asks the lock that the server's processes hold, then the server's own file.
func (h home) state() (state, pidfile, error) {
	l, err := openLock(h.path("lock.server"))
	if err != nil {
		return down, pidfile{}, err
	}
	defer l.close()
	free, err := l.try(syscall.LOCK_SH)
	if free || err != nil {
		return down, pidfile{}, err
	}
	p, ok := h.readPidfile()
	switch {
	case !ok:
		return starting, p, nil
	case !alive(p.pid):
		return headless, p, nil
	case p.status == "ready":
		return ready, p, nil
	case p.status == "stopping":
		return stopping, p, nil
	}
	return starting, p, nil
}

// isServer tells our server from a stranger that got its number.
func (h home) isServer(p process) bool {
	return p.uid == h.who.uid && strings.Contains(p.command, "postgres") && strings.Contains(p.command+" ", " "+h.data()+" ")
}

// clearStale removes what a dead server left that would keep the next from starting. It is called when no process of
// a server of ours lives; a server that somebody started by hand at this data is left alone.
func (h home) clearStale() error {
	if p, ok := h.readPidfile(); ok {
		if proc, found := describe(p.pid); found && h.isServer(proc) {
			return fmt.Errorf("start PostgreSQL: process %d, not started by pawgate, is a server at %s: stop it", p.pid, h.data())
		}
	}
	if err := os.Remove(filepath.Join(h.data(), "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear stale pid file: %w", err)
	}
	entries, err := os.ReadDir(h.path("run"))
	if err != nil {
		return fmt.Errorf("clear stale sockets: %w", err)
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(h.path("run"), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear stale sockets: %w", err)
		}
	}
	return nil
}

// signal sends to the server's first process if that really is it, and reports whether it did.
func (h home) signal(sig syscall.Signal) bool {
	p, ok := h.readPidfile()
	if !ok {
		return false
	}
	proc, found := describe(p.pid)
	return found && h.isServer(proc) && syscall.Kill(p.pid, sig) == nil
}

// killHeadless ends the processes that outlived the server's first one, such as one in a long computation: they hold
// the shared memory that the next server needs.
func (h home) killHeadless() error {
	all, err := processes()
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		if p.uid == h.who.uid && strings.HasPrefix(p.command, "postgres: "+h.name()+": ") {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // Gone in between is as good.
		}
	}
	return nil
}
