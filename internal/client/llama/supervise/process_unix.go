//go:build linux || darwin

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is a running server process.
type child struct {
	id   identity
	done chan struct{} // closed when it is gone and waited for
	// exit is set before done is closed.
	exit    exit
	foreign bool // adopted: its id may be given to another process once it is gone
}

// exit is how a process ended; known is false for an adopted one, which is
// not ours to wait for.
type exit struct {
	known  bool
	code   int
	signal syscall.Signal
}

func (e exit) killed() bool { return e.known && e.signal == syscall.SIGKILL }

// launch starts a program in a process group of its own, its output in a file,
// and waits for it in the background so that no zombie stays. An APE that the
// kernel does not know how to run goes through sh, as it needs where its loader
// is not registered.
func launch(program string, args, env []string, log *os.File) (c *child, shell bool, err error) {
	cmd := command(program, args, env, log)
	err = cmd.Start()
	if errors.Is(err, syscall.ENOEXEC) && isAPE(beginning(program)) {
		shell = true
		cmd = command("/bin/sh", append([]string{program}, args...), env, log)
		err = cmd.Start()
	}
	if err != nil {
		return nil, shell, err
	}
	c = &child{done: make(chan struct{}), id: identity{PID: cmd.Process.Pid}}
	c.id.Start, _ = startOf(c.id.PID) // unknown when it is over already
	go func() {
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
			c.exit = exit{known: true, code: status.ExitStatus()}
			if status.Signaled() {
				c.exit.signal = status.Signal()
			}
		}
		_ = syscall.Kill(-c.id.PID, syscall.SIGKILL) // what it started and left
		close(c.done)
	}()
	return c, shell, nil
}

func command(program string, args, env []string, log *os.File) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// pollAdopted is how often an adopted process is looked at.
const pollAdopted = 200 * time.Millisecond

// adopt watches a process that is not our child.
func adopt(id identity) *child {
	c := &child{id: id, done: make(chan struct{}), foreign: true}
	go func() {
		for id.running() {
			time.Sleep(pollAdopted)
		}
		close(c.done)
	}()
	return c
}

// terminate asks the process group to end and kills it when it does not.
func (c *child) terminate(patience time.Duration) {
	if !c.alive() {
		return
	}
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
		return
	case <-time.After(patience):
	}
	if c.alive() {
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}

func (c *child) signal(sig syscall.Signal) {
	if !c.foreign || c.id.running() {
		_ = syscall.Kill(-c.id.PID, sig)
	}
}

func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// running reports whether the process with this id is still the one that was
// recorded.
func (id identity) running() bool {
	if id.PID <= 1 || id.Start == "" {
		return false
	}
	start, err := startOf(id.PID)
	return err == nil && start == id.Start
}

var errLocked = errors.New("locked by another process")

// lock is a lock on a file. The system gives it back when the process dies.
type lock struct{ file *os.File }

func openLock(path string, how int) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return &lock{file: f}, nil
}

func tryLock(path string) (*lock, error)    { return openLock(path, syscall.LOCK_EX|syscall.LOCK_NB) }
func lockShared(path string) (*lock, error) { return openLock(path, syscall.LOCK_SH) }

// upgrade reports whether nobody else holds the lock.
func (l *lock) upgrade() bool {
	return syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func (l *lock) release() error { return l.file.Close() }
